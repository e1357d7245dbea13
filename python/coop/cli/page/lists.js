// Tables with bars: what there is most of comes first.

const kMostListed = 8;

// rows: {title, amount, text, more}
function barList(heading, rows, colour, nothing) {
  const most = rows.reduce((sum, row) => Math.max(sum, row.amount), 0);
  const shown = rows.slice(0, kMostListed);
  const table = element("table", { className: "bars" });
  for (const row of shown) {
    const bar = element("span", { className: "bar" });
    bar.style.width = `${most > 0 ? 100 * row.amount / most : 0}%`;
    bar.style.background = row.colour ?? colour;
    table.append(element("tr", {},
      element("th", { scope: "row" }, row.title, bar),
      element("td", { className: "first" }, row.text),
      element("td", { className: "second" }, row.more)));
  }
  const left = rows.length - shown.length;
  const rest = left > 0 ? element("p", { className: "faint" }, `and ${left} more`) : null;
  return element("div", {},
    element("h3", {}, heading),
    rows.length > 0 ? table : element("p", { className: "faint" }, nothing), rest);
}

function legendOf(run, isUsed, ...more) {
  const legend = element("div", { className: "legend" });
  run.fillings.forEach((label, i) => {
    if (!isUsed(i)) return;
    const key = element("i", {});
    key.style.background = `var(--f${i})`;
    legend.append(element("span", {}, key, label));
  });
  for (const [className, label] of more) legend.append(element("span", {}, element("i", { className }), label));
  return legend;
}

function lostSection(run) {
  const all = run.lost.ops.reduce((sum, it) => sum + it.ns, 0);
  const asRow = (it) => ({
    title: it.title || "(in no module)", amount: it.ns, text: asTime(it.ns), more: asCount(it.times, "time"),
  });
  const nothing = "Nothing ran again.";
  const modules = run.has_modules
    ? barList("by module (* stands for any number)", run.lost.modules.map(asRow), "var(--f6)", nothing)
    : element("div", {}, element("h3", {}, "by module"),
      element("p", { className: "faint" }, "This trace has no names of modules. coop.record, coop run and coop plan collect them."));
  const moving = run.moving_ns > 0 ? `, and ${asTime(run.moving_ns)} of moving blocks together` : "";
  return element("section", {},
    element("h2", {}, "What is recomputed"),
    element("p", { className: "faint" }, run.status === "ok"
      ? `${asTime(all)} of operators that ran again${moving}: ${asMore(run.overhead)} more time than without coop.`
      : `Until it ran out of memory, ${asTime(all)} of operators that ran again.`),
    element("div", { className: "two" }, barList("by operator", run.lost.ops.map(asRow), "var(--f6)", nothing), modules),
    stepsList(run));
}

function stepsList(run) {
  const steps = run.all_steps;
  if (steps.length < 2) return null;
  const lost = steps.map((step) => step.recomputed_ns + step.moving_ns);
  const rows = steps.map((step, i) => ({
    title: `step ${i + 1}${i + 1 === steps.length ? " (shown here)" : ""}`,
    amount: lost[i], text: asTime(lost[i]), more: `${asMore(step.base_ns > 0 ? lost[i] / step.base_ns : 0)} more`,
  }));
  const shown = rows.length <= kMostListed ? rows : [...rows.slice(0, 3), ...rows.slice(3 - kMostListed)];
  return barList("time lost, step by step", shown, "var(--f6)", "");
}

function fullestSection(run) {
  const { fullest } = run;
  const kinds = run.fillings.map((title, i) => ({
    title, amount: fullest.held[i], text: asBytes(fullest.held[i]), more: asShare(fullest.held[i], run.budget_bytes), colour: `var(--f${i})`,
  })).filter((row) => row.amount > 0).sort((a, b) => b.amount - a.amount);
  const asRow = (it) => ({
    title: it.title || "(in no module)", amount: it.bytes, text: asBytes(it.bytes), more: asCount(it.times, "block"),
  });
  const by = run.has_modules
    ? barList("whose it is, by module (* stands for any number)", fullest.modules.map(asRow), "var(--f5)", "")
    : barList("what made it", fullest.ops.map(asRow), "var(--f5)", "");
  const where = fullest.op ? `, in ${fullest.op}${fullest.module ? ` of ${fullest.module}` : ""}` : "";
  return element("section", {},
    element("h2", {}, "What fills memory"),
    element("p", { className: "faint" },
      `When most is held: ${asBytes(fullest.bytes)} after ${asTime(fullest.ns)}${where}.`),
    element("div", { className: "two" }, barList("what it is for", kinds, "", ""), by));
}

// Of what is pinned, made, evictable, a source, lineage, exported, small, elsewhere.
const kHolderColours = ["--alarm", "--f7", "--f5", "--f3", "--f4", "--f2", "--f1", "--f0"].map((it) => `var(${it})`);

function floorSection(run) {
  const section = element("section", {}, element("h2", {}, run.status === "ok" ? "What sets the floor" : "What is in the way"));
  const { tightest } = run;
  if (!tightest) {
    section.append(element("p", { className: "faint" }, run.is_floor_known
      ? "Every budget that was tried works."
      : "For a trace as long as this, that takes minutes to find out: coop sim explain does it."));
    return section;
  }
  const whose = tightest.module ? ` (${tightest.module})` : "";
  const room = tightest.largest_room_bytes < tightest.requested_bytes
    ? `${asBytes(tightest.requested_bytes)} are asked for, and at most ${asBytes(tightest.largest_room_bytes)} can be made free in one piece.`
    : `There is room for the ${asBytes(tightest.requested_bytes)} that are asked for, but not for all that has to be computed again for it together.`;
  section.append(element("p", { className: "faint" },
    `With ${asBytes(tightest.budget_bytes)} it ends ${tightest.where}${whose}: the tightest moment. ${room}`));
  const held = [...tightest.held.map((it) => ({ ...it, colour: kHolderColours[it.holder] })),
    { what: "free", bytes: tightest.free_bytes, colour: "var(--free)" }];
  const stack = element("div", { className: "stack" });
  const legend = element("div", { className: "legend" });
  for (const { what, bytes, colour } of held) {
    const part = element("div", { title: `${what}: ${asBytes(bytes)}` });
    part.style.flexGrow = bytes;
    part.style.background = colour;
    stack.append(part);
    const key = element("i", {});
    key.style.background = colour;
    legend.append(element("span", {}, key, `${what}: ${asBytes(bytes)}`));
  }
  const largest = tightest.largest.map((it) => ({ title: it.title, amount: it.bytes, text: asBytes(it.bytes), more: "" }));
  section.append(element("h3", {}, "who has the memory then"), stack, legend,
    barList("the largest that cannot go", largest, "var(--f0)", "None."));
  return section;
}
