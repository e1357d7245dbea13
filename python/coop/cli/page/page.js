// The page, from what the simulator said of each run.

function main() {
  const report = JSON.parse(document.getElementById("report").textContent);
  const { runs } = report;
  const page = document.getElementById("page");
  const mostBytes = Math.max(...runs.map((run) => Math.max(run.peak_bytes, run.budget_bytes))) * 1.08;
  const longest = Math.max(...runs.map((run) => run.step_ns));  // the same scales for all
  const isOne = runs.length === 1;
  page.replaceChildren(
    ...(isOne ? [] : [element("h1", {}, `Memory of ${runs.length} runs`), comparison(runs)]),
    element("div", { className: isOne ? "runs" : "runs several" }, ...runs.map((run) => runSection(run, mostBytes, longest, isOne))),
    footer(report));
  redrawAll();
  addEventListener("beforeprint", () => setPaper(true));
  addEventListener("afterprint", () => setPaper(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
}

// Before a page is printed it still has the window's width, and may be dark.
function setPaper(isPaper) {
  document.documentElement.classList.toggle("paper", isPaper);
  redrawAll();
}

const kViews = [];
function redrawAll() {
  for (const view of kViews) view.redraw();
}

function runSection(run, mostBytes, longest, isOne) {
  const view = new View(longest);
  kViews.push(view);
  const share = `${asShare(run.budget_bytes, run.peak_bytes)} of the ${asBytes(run.peak_bytes)} that it takes without coop`;
  const isUsed = (i) => run.moments.held[i].some((bytes) => bytes > 0);
  const chart = new MemoryChart(run, view, mostBytes);
  const map = new PoolMap(run, view);
  const left = run.blocks.left_out;
  return element("section", {},
    element(isOne ? "h1" : "h2", {}, `Memory of ${run.name}`),
    element("p", { className: "faint" }, `in ${asBytes(run.budget_bytes)}, ${share}; policy ${run.policy}`),
    isOne ? cards(run) : null,
    element("ul", { className: "advice" }, ...run.advice.map((text) => element("li", {}, text))),
    element("h2", {}, run.has_steps ? "Memory over one step" : "Memory over time"),
    element("p", { className: "faint" }, stepText(run)),
    legendOf(run, isUsed, ["stroke", "the budget"], ["stroke dashed", "what it would take without coop"]),
    element("figure", {}, chart.canvas),
    element("h2", {}, "Where it lies"),
    element("p", { className: "faint" },
      "Every block of the pool: its address, and from when to when it is there. A tensor that was evicted and comes back is orange from then on."),
    legendOf(run, isUsed, ["edge", "evicted here"]),
    zoomTools(view),
    element("figure", {}, map.canvas),
    left > 0 ? element("p", { className: "faint" }, `${asCount(left, "block")}, the smallest and shortest, are left out.`) : null,
    fullestSection(run),
    lostSection(run),
    floorSection(run));
}

function stepText(run) {
  const count = run.all_steps.length;
  const ends = run.status === "ok" ? "" : ", up to where it runs out of memory";
  const what = run.status !== "ok" ? `Step ${count + 1}` : count > 1 ? `The last of ${count} steps` : "The step";
  const all = "All that was recorded, in which no steps are marked";
  return `${run.has_steps ? what : all}${ends}. Time is what operators take, with those that run again.`;
}

function zoomTools(view) {
  const back = element("button", { type: "button", disabled: true }, "all of it");
  back.addEventListener("click", () => view.show(0, view.length));
  view.listeners.push(() => { back.disabled = view.isWhole; });
  return element("div", { className: "tools faint" },
    "Point at a block to see what it is. Drag over a stretch of time to look closer; double-click to go back.", back);
}

function figures(run) {
  const isOk = run.status === "ok";
  return [
    ["Budget", asBytes(run.budget_bytes), `${asBytes(run.peak_bytes)} without coop`, ""],
    isOk ? ["More time", asMore(run.overhead), `${asTime(run.base_ns)} become ${asTime(run.total_ns)}`, run.overhead > .5 ? "bad" : "good"]
      : ["Out of memory", "does not fit", `${asBytes(run.failure.requested_bytes)} asked for`, "bad"],
    ["Evicted", isOk ? asCount(run.evictions, "time") : "–", isOk ? `${asBytes(run.evicted_bytes)} in all` : "", ""],
    ["Recomputed", isOk ? asCount(run.recomputed_calls, "operator") : "–", isOk ? `most: ${run.lost.ops[0]?.title ?? "none"}` : "", ""],
    ["Smallest budget", ...smallestBudget(run), ""],
  ];
}

function smallestBudget(run) {
  if (!run.is_floor_known) return ["not looked for", "a long trace: see coop sim explain"];
  if (run.smallest_budget_bytes === null) return ["none found", ""];
  return [asBytes(run.smallest_budget_bytes), `${asShare(run.smallest_budget_bytes, run.peak_bytes)} of what it takes`];
}

function cards(run) {
  return element("div", { className: "cards" }, ...figures(run).map(([title, value, more, mood]) =>
    element("div", { className: `card ${mood}` }, title, element("b", {}, value), element("span", { className: "faint" }, more))));
}

function comparison(runs) {
  const table = element("table", { className: "compared" });
  table.append(element("tr", {}, element("th", {}, ""),
    ...runs.map((run) => element("th", { scope: "col" }, `${run.name}, ${run.policy}, ${asBytes(run.budget_bytes)}`))));
  const columns = runs.map(figures);
  columns[0].forEach(([title], i) => {
    table.append(element("tr", {}, element("th", { scope: "row" }, title),
      ...columns.map((column) => element("td", {}, column[i][2] ? `${column[i][1]} (${column[i][2]})` : column[i][1]))));
  });
  return table;
}

function footer(report) {
  const names = report.runs.map((run) => run.trace).join(", ");
  return element("footer", { className: "faint" },
    `Made by coop ${report.version} from ${names}: what was recorded, run again by coop's own engine on memory that is not there. `,
    "It decides there as it does in the program.");
}

main();
