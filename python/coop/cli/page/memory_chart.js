// How much memory is held when, by what it is for; the budget; and what the same program would hold without one.

class MemoryChart extends Drawing {
  constructor(run, view, mostBytes) {
    const label = `Memory over time: at most ${asBytes(run.most_held_bytes)} in a budget of ` +
      `${asBytes(run.budget_bytes)}; without coop ${asBytes(run.peak_bytes)}.`;
    super(view, 290, label);
    this.run = run;
    this.mostBytes = mostBytes;
    this.held = run.moments.held;
    this.needed = run.moments.needed;
    this.each = run.step_ns / Math.max(this.needed.length, 1);
  }

  paint() {
    const { pen, held, needed } = this;
    const below = new Float64Array(needed.length);
    for (let kind = 0; kind < held.length; ++kind) {
      pen.fillStyle = this.colour(`--f${kind}`);
      pen.beginPath();
      let isAny = false;
      for (let i = 0; i < needed.length; ++i) {
        if (held[kind][i] === 0) continue;
        isAny = true;
        const left = this.x(i * this.each);
        const bottom = this.y(below[i]);
        below[i] += held[kind][i];
        pen.rect(left, this.y(below[i]), this.x((i + 1) * this.each) - left + .3, bottom - this.y(below[i]) + .3);
      }
      if (isAny) pen.fill();
    }
    pen.strokeStyle = this.colour("--needed");
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 3]);
    pen.beginPath();
    for (let i = 0; i < needed.length; ++i) {
      pen.lineTo(this.x(i * this.each), this.y(needed[i]));
      pen.lineTo(this.x((i + 1) * this.each), this.y(needed[i]));
    }
    pen.stroke();
    pen.setLineDash([]);
    pen.strokeStyle = this.colour("--alarm");
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(kLeft, this.y(this.run.budget_bytes));
    pen.lineTo(this.right, this.y(this.run.budget_bytes));
    pen.stroke();
    pen.lineWidth = 1;
  }

  paintOver() {
    const { pen, run } = this;
    pen.font = "bold 12px system-ui, sans-serif";
    pen.textBaseline = "bottom";
    pen.textAlign = "left";
    pen.fillStyle = this.colour("--alarm");
    this.write(`budget ${asBytes(run.budget_bytes)}`, kLeft + 6, this.y(run.budget_bytes) - 3);
    const most = this.needed.reduce((best, it, i) => (it > this.needed[best] ? i : best), 0);
    const x = Math.min(Math.max(this.x(most * this.each), kLeft + 90), this.right - 90);
    pen.textAlign = "center";
    pen.fillStyle = this.colour("--needed");
    this.write(`without coop ${asBytes(this.needed[most] ?? 0)}`, x, Math.max(this.y(this.needed[most] ?? 0) - 3, 15));
    pen.font = "12px system-ui, sans-serif";
  }

  point(event) {
    if (event === null) return;
    const ns = this.time(event.offsetX);
    const at = Math.floor(ns / this.each);
    if (!(at >= 0 && at < this.needed.length)) return hideTip();
    const all = this.held.reduce((sum, kind) => sum + kind[at], 0);
    const rows = [["held", asBytes(all)], ["without coop", asBytes(this.needed[at])]];
    this.held.forEach((kind, i) => {
      if (kind[at] > 0) rows.push([this.run.fillings[i], asBytes(kind[at])]);
    });
    showTip(event, `after ${asTime(ns)}`, rows);
  }
}
