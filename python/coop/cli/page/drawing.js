// A canvas with a time axis. It is as wide as the page lets it be, and drawn anew when that, or the colours, change.

const kLeft = 76;
const kRight = 12;
const kTop = 22;
const kBottom = 26;
const kPaperWidth = 720;  // A4 and Letter have about as much

class Drawing {
  // view: {from, to}, in nanoseconds; drawings that share one show the same time.
  constructor(view, height, label) {
    this.view = view;
    this.height = height;
    this.canvas = element("canvas", {});
    this.canvas.style.height = `${height}px`;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    view.drawings.push(this);
    new ResizeObserver(() => { if (this.canvas.clientWidth !== this.width) this.draw(); }).observe(this.canvas);
    this.canvas.addEventListener("pointerleave", () => { hideTip(); this.point(null); });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("click", (event) => this.point(event));
  }

  get right() { return this.width - kRight; }
  get bottom() { return this.height - kBottom; }
  x(ns) { return kLeft + (ns - this.view.from) / (this.view.to - this.view.from) * (this.right - kLeft); }
  time(x) { return this.view.from + (x - kLeft) / (this.right - kLeft) * (this.view.to - this.view.from); }
  y(bytes) { return this.bottom - bytes / this.mostBytes * (this.bottom - kTop); }

  colour(name) { return this.style.getPropertyValue(name).trim(); }

  draw() {
    const isPaper = document.documentElement.classList.contains("paper");
    this.width = isPaper ? kPaperWidth : this.canvas.clientWidth;
    if (this.width === 0) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.style = getComputedStyle(document.documentElement);
    this.pen = this.canvas.getContext("2d");
    this.pen.scale(scale, scale);
    this.pen.font = "12px system-ui, sans-serif";
    this.pen.fillStyle = this.colour("--free");
    this.pen.fillRect(kLeft, kTop, this.right - kLeft, this.bottom - kTop);
    this.pen.save();
    this.pen.beginPath();
    this.pen.rect(kLeft, kTop, this.right - kLeft, this.bottom - kTop);
    this.pen.clip();
    this.paint();
    this.pen.restore();
    this.drawAxes();
    this.paintOver();
    this.kept = element("canvas", { width: this.canvas.width, height: this.canvas.height });
    this.kept.getContext("2d").drawImage(this.canvas, 0, 0);
  }

  // On top of what is drawn, in place of what was on top of it: to draw a hundred thousand blocks takes too long to do it
  // whenever the pointer moves.
  overlay(paint) {
    const { pen } = this;
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.kept, 0, 0);
    pen.restore();
    pen.save();
    pen.beginPath();
    pen.rect(kLeft, kTop, this.right - kLeft, this.bottom - kTop);
    pen.clip();
    paint();
    pen.restore();
  }

  // Readable on whatever it comes to lie.
  write(text, x, y) {
    const { pen } = this;
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    pen.strokeStyle = this.colour("--free");
    pen.strokeText(text, x, y);
    pen.fillText(text, x, y);
    pen.lineWidth = 1;
  }

  drawAxes() {
    const { pen } = this;
    pen.fillStyle = this.colour("--faint");
    pen.strokeStyle = this.colour("--line");
    pen.strokeRect(kLeft + .5, kTop + .5, this.right - kLeft - 1, this.bottom - kTop - 1);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const { value, label } of byteTicks(this.mostBytes, this.height / 45)) {
      pen.fillText(label, kLeft - 8, this.y(value));
      pen.fillRect(kLeft - 5, this.y(value) - .5, 5, 1);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const { value, label } of timeTicks(this.view.from, this.view.to, this.width / 110)) {
      if (this.x(value) > this.right - 20) continue;
      pen.fillText(label, this.x(value), this.bottom + 8);
      pen.fillRect(this.x(value) - .5, this.bottom, 1, 5);
    }
  }
}

class View {
  constructor(length) {
    this.length = length;
    this.drawings = [];
    this.from = 0;
    this.to = length;
    this.listeners = [];
  }
  get isWhole() { return this.from === 0 && this.to === this.length; }
  show(from, to) {
    const least = this.length / 1e6;
    if (to - from < least) return;
    this.from = Math.max(0, from);
    this.to = Math.min(this.length, to);
    this.redraw();
  }
  redraw() {
    for (const drawing of this.drawings) drawing.draw();
    for (const listener of this.listeners) listener();
  }
}
