// Numbers for people, and elements whose text is only ever text: names come from the program and are not trusted.

function asBytes(bytes) {
  let amount = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (amount < 1023.95) return unit === "B" ? `${bytes} B` : `${amount.toFixed(1)} ${unit}`;
    amount /= 1024;
  }
  return `${amount.toFixed(1)} TiB`;
}

function asTime(ns) {
  for (const [unit, scale] of [["s", 1e9], ["ms", 1e6]]) {
    if (ns >= scale) return `${(ns / scale).toFixed(1)} ${unit}`;
  }
  return `${(ns / 1e3).toFixed(1)} us`;
}

function asShare(part, whole) {
  return whole > 0 ? `${(100 * part / whole).toFixed(1)}%` : "0.0%";
}

// Of what it adds: "12.8%", and "102 times" where percents are not read any more.
function asMore(overhead) {
  return overhead < 10 ? asShare(overhead, 1) : asCount(Math.round(overhead), "time");
}

function asCount(count, what) {
  return `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : "s"}`;
}

// element("p", {className: "faint"}, "text", otherElement)
function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Evenly spaced round numbers from 0 to `most`, with the unit that suits all of them.
function byteTicks(most, about) {
  return ticks(most, about, [[1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"], [1, "B"]]);
}

function timeTicks(from, to, about) {
  return ticks(to, about, [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]], from);
}

function ticks(to, about, units, from = 0) {
  const span = to - from;
  if (!(span > 0)) return [];
  const [scale, unit] = units.find(([size]) => to >= size) ?? units.at(-1);
  const rough = span / scale / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((it) => it * power).find((it) => it >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const list = [];
  for (let i = Math.ceil(from / scale / step); i * step * scale <= to * 1.0000001; ++i) {
    list.push({ value: i * step * scale, label: `${(i * step).toFixed(digits)} ${unit}` });
  }
  return list;
}

// --- what the pointer is at ---

function showTip(event, title, rows) {
  const tip = document.getElementById("tip");
  const list = element("dl", {});
  for (const [what, value] of rows) list.append(element("dt", {}, what), element("dd", {}, value));
  tip.replaceChildren(element("b", {}, title), list);
  tip.style.display = "block";
  const { width, height } = tip.getBoundingClientRect();
  const x = event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
  const y = Math.min(event.clientY + 14, innerHeight - height - 8);
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}

function hideTip() {
  document.getElementById("tip").style.display = "none";
}
