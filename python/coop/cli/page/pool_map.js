// The pool: addresses upwards, time to the right, a box for every block.

class PoolMap extends Drawing {
  constructor(run, view) {
    super(view, 480, `The pool of ${asBytes(run.budget_bytes)} over time: ` +
      asCount(run.blocks.begin_ns.length, "block"));
    this.canvas.className = "pool";
    this.run = run;
    this.mostBytes = run.budget_bytes;
    const { blocks } = run;
    for (const column of ["begin_ns", "end_ns", "offset", "bytes"]) this[column] = Float64Array.from(blocks[column]);
    this.count = this.begin_ns.length;
    this.eviction = new Map(run.evicted_blocks.block.map((block, i) => [block, i]));
    this.byFilling = run.fillings.map(() => []);
    for (let i = 0; i < this.count; ++i) this.byFilling[blocks.filling[i]].push(i);
    this.pointed = -1;
    this.watchDrag();
  }

  paint() {
    const { pen } = this;
    const ground = this.colour("--ground");
    const roomy = [];
    this.byFilling.forEach((list, filling) => {
      pen.fillStyle = this.colour(`--f${filling}`);
      for (const i of list) {
        if (this.end_ns[i] < this.view.from || this.begin_ns[i] > this.view.to) continue;
        const [x, y, width, height] = this.box(i);
        pen.fillRect(x, y, Math.max(width, .7), Math.max(height, .7));
        if (width > 4 && height > 3) roomy.push(i);
      }
    });
    pen.strokeStyle = ground;
    pen.lineWidth = .6;
    for (const i of roomy) pen.strokeRect(...this.box(i));
    this.paintEvictions();
    this.paintTitles(roomy);
  }

  paintEvictions() {
    this.pen.fillStyle = this.colour("--alarm");
    for (const block of this.eviction.keys()) {
      const [x, y, width, height] = this.box(block);
      if (x + width < kLeft || x + width > this.right || height < 1) continue;
      this.pen.fillRect(x + width - 1.5, y, 1.5, height);
    }
  }

  // Where there is room for it: what it is.
  paintTitles(roomy) {
    const { pen } = this;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    for (const i of roomy) {
      let [x, y, width, height] = this.box(i);
      width = Math.min(x + width, this.right) - Math.max(x, kLeft);
      if (width < 46 || height < 13) continue;
      const text = this.fitting(this.titleInParts(i), width - 8);
      pen.fillStyle = this.colour(this.run.blocks.filling[i] === 0 ? "--on-f0" : "--ink");
      if (text) pen.fillText(text, Math.max(x, kLeft) + 4, y + height / 2);
    }
  }

  // As much of it as there is room for. The outer modules, which come first, are what many have in common.
  fitting(parts, width) {
    const length = (text) => this.pen.measureText(text).width;
    let from = 0;
    while (from < parts.length - 1 && length(parts.slice(from).join("")) > width) ++from;
    const text = parts.slice(from).join("");
    const most = Math.floor(text.length * width / length(text));
    if (most >= text.length) return text;
    return most < 5 ? "" : `${text.slice(0, most - 1)}…`;
  }

  // All that this tensor has been, in the step.
  paintPointed() {
    const { pen, run } = this;
    const storage = run.blocks.storage[this.pointed];
    pen.strokeStyle = this.colour("--ink");
    for (let i = 0; i < this.count; ++i) {
      const isSame = i === this.pointed || (storage > 0 && run.blocks.storage[i] === storage);
      if (!isSame) continue;
      pen.lineWidth = i === this.pointed ? 2.5 : 1.5;
      const [x, y, width, height] = this.box(i);
      pen.strokeRect(x, y, Math.max(width, 2), Math.max(height, 2));
    }
  }

  box(i) {
    const x = this.x(this.begin_ns[i]);
    const y = this.y(this.offset[i] + this.bytes[i]);
    return [x, y, this.x(this.end_ns[i]) - x, this.y(this.offset[i]) - y];
  }

  paintOver() {
    const { pen } = this;
    pen.textBaseline = "bottom";
    pen.textAlign = "left";
    pen.fillStyle = this.colour("--faint");
    let last = -Infinity;
    for (const { ns, text } of this.run.remarks) {
      const x = this.x(ns);
      if (x < kLeft || x > this.right || x - last < 70) continue;
      pen.fillRect(x - .5, kTop - 6, 1, this.bottom - kTop + 6);
      pen.fillText(text.slice(0, 24), x + 4, kTop - 5);
      last = x;
    }
  }

  // --- what is where ---

  find(event) {
    const time = this.time(event.offsetX);
    const address = (this.bottom - event.offsetY) / (this.bottom - kTop) * this.mostBytes;
    const slack = (this.view.to - this.view.from) / (this.right - kLeft) * .5;
    for (let i = this.count - 1; i >= 0; --i) {
      if (this.offset[i] <= address && address < this.offset[i] + this.bytes[i] &&
          this.begin_ns[i] - slack <= time && time < this.end_ns[i] + slack) return i;
    }
    return -1;
  }

  title(i) {
    const { blocks, names, places } = this.run;
    const { op, module } = places[blocks.place[i]];
    return names[blocks.name[i]] || (op ? `${op}${module ? ` in ${module}` : ""}` : "from outside");
  }

  titleInParts(i) {
    const { blocks, names, places } = this.run;
    const name = names[blocks.name[i]];
    if (name) return name.split(/(?<=[ .])/);
    const { op, module } = places[blocks.place[i]];
    const short = op.replace(/^\w+(::|\.)/, "");
    return module ? [...`${module}: `.split(/(?<=\.)/), short] : [short];
  }

  rows(i) {
    const { blocks, places, fillings } = this.run;
    const { op, module } = places[blocks.place[i]];
    const from = this.begin_ns[i] > 0 ? asTime(this.begin_ns[i]) : "the beginning";
    const to = this.end_ns[i] < this.run.step_ns ? asTime(this.end_ns[i]) : "the end";
    const rows = [["size", asBytes(this.bytes[i])], ["what", fillings[blocks.filling[i]]]];
    if (op) rows.push(["operator", op]);
    if (module) rows.push(["module", module]);
    rows.push(["there", `from ${from} to ${to}`]);
    const eviction = this.eviction.get(i);
    if (eviction !== undefined) rows.push(["then evicted", this.why(eviction)]);
    if (blocks.again[i] > 0) rows.push(["recomputed", asCount(blocks.again[i], "time")]);
    return rows;
  }

  why(i) {
    const evictions = this.run.evicted_blocks;
    const { op, module } = this.run.places[evictions.for_place[i]];
    const whose = op ? `${op}${module ? ` in ${module}` : ""}` : "the end";
    const bytes = evictions.for_bytes[i];
    const reason = bytes > 0 ? `to make room for ${asBytes(bytes)} for ${whose}` : `ahead of need, before ${whose}`;
    return `${reason}; to bring it back takes ${asTime(evictions.return_ns[i])}`;
  }

  point(event) {
    const found = event === null || this.isDragging ? -1 : this.find(event);
    if (found < 0) hideTip();
    else showTip(event, this.title(found), this.rows(found));
    if (found === this.pointed) return;
    this.pointed = found;
    this.overlay(() => { if (found >= 0) this.paintPointed(); });
  }

  // --- a closer look ---

  watchDrag() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener("pointerdown", (event) => { from = event.pointerType === "mouse" ? event.offsetX : null; });
    canvas.addEventListener("pointermove", (event) => {
      this.isDragging = from !== null && Math.abs(event.offsetX - from) > 6;
      if (!this.isDragging) return;
      this.overlay(() => {
        this.pen.fillStyle = this.colour("--ink");
        this.pen.globalAlpha = .2;
        this.pen.fillRect(Math.min(from, event.offsetX), kTop, Math.abs(event.offsetX - from), this.bottom - kTop);
      });
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.isDragging) {
        const [left, right] = [from, event.offsetX].sort((a, b) => a - b);
        this.view.show(this.time(Math.max(left, kLeft)), this.time(Math.min(right, this.right)));
      }
      from = null;
      this.isDragging = false;
    });
    canvas.addEventListener("dblclick", () => this.view.show(0, this.view.length));
  }
}
