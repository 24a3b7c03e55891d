"use strict";
const {runs, measures} = "data";
const colours = Array.from({length: 8}, (_, number) => `var(--c${number})`);
const get = id => document.getElementById(id);
const columns = [
  ["Time", run => run.time], ["Experiment", run => run.experiment], ["Scheduler", run => run.scheduler],
  ["Status", run => run.status], ["Nodes", run => run.nodes], ["Measure", run => middle(run) ?? -Infinity],
  ["Run", run => run.id],
];
const state = {column: 0, descending: true};

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "circle", "line", "text", "title", "g"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function values(run) {
  const name = get("measure").value;
  return run.measures.map(each => each[name]).filter(value => value !== undefined).sort((a, b) => a - b);
}

function middle(run) {
  const all = values(run);
  if (!all.length) return undefined;
  const half = Math.floor(all.length / 2);
  return all.length % 2 ? all[half] : (all[half - 1] + all[half]) / 2;
}

function shown(value) {
  const number = digits => value.toLocaleString("en", {maximumFractionDigits: digits});
  switch (measures[get("measure").value].unit) {
    case "s": return value > 0 && value < 0.1 ? `${(value * 1000).toFixed(0)} ms` : `${number(2)} s`;
    case "share": return `${(value * 100).toFixed(1)} %`;
    case "perSecond": return `${number(value < 10 ? 2 : 0)}/s`;
    case "bytes": return `${Math.round(value / 1e6).toLocaleString("en")} MB`;
    case "usd": return `$${number(value < 1 ? 6 : 2)}`;
    case "gpuSeconds": return `${number(0)} GPU-s`;
    case "gpuHours": return `${number(2)} GPU-h`;
    default: return number(2);
  }
}

function figure(run) {
  const value = middle(run);
  if (value !== undefined) return shown(value);
  if (run.status === "partial") return "incomplete";
  return run.notMeasured.includes(get("measure").value) ? "not measured" : "–";
}

function chosen() {
  const words = get("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter(run => {
    for (const key of ["experiment", "scheduler", "status"])
      if (get(key).value && run[key] !== get(key).value) return false;
    const text = JSON.stringify({...run, measures: 0}).toLowerCase();
    return words.every(word => text.includes(word));
  });
}

function table(list) {
  const key = columns[state.column][1], order = state.descending ? -1 : 1;
  const sorted = [...list].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * order);
  const rows = sorted.map(run => {
    const plots = run.plots.map((plot, index) => element("a", {href: plot}, ` ${index + 1}`));
    const why = [...new Set([run.error, ...run.missed, ...run.unheard])].filter(Boolean).map(text => element("small", {}, text));
    return element("tr", {"data-run": run.id},
      element("td", {}, run.time.replace("T", " ").replace("Z", "")),
      element("td", {}, run.experiment, element("small", {}, `stack ${run.stack}`)),
      element("td", {}, run.scheduler),
      element("td", {}, element("span", {class: run.status}, run.status), ...why),
      element("td", {class: "number"}, run.nodes.toLocaleString("en")),
      element("td", {class: "number"}, figure(run)),
      element("td", {}, element("a", {href: run.path}, run.id), element("small", {}, plots.length ? "plots" : "", ...plots)));
  });
  get("runs").replaceChildren(...rows);
  get("heads").children[5].textContent = get("measure").value;
  document.querySelectorAll("#heads th").forEach((head, index) => head.setAttribute(
    "aria-sort", index === state.column ? (state.descending ? "descending" : "ascending") : "none"));
}

function trends(list) {
  const charts = [];
  for (const experiment of [...new Set(list.map(run => run.experiment))].sort()) {
    const points = list.filter(run => run.experiment === experiment && middle(run) !== undefined);
    if (points.length) charts.push(element("h2", {}, experiment), ...chart(points));
  }
  get("trends").replaceChildren(...charts);
  const {meaning, better} = measures[get("measure").value];
  get("meaning").textContent = `${get("measure").value}: ${meaning}${better ? `; ${better} is better` : ""}`;
}

function chart(points) {
  // As wide as it is shown, so that text is as large as elsewhere.
  const [width, height, left, top, bottom] = [Math.max(300, get("trends").clientWidth), 220, 70, 8, 20];
  const times = points.map(run => Date.parse(run.time)), most = Math.max(...points.flatMap(values), 1e-9);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const x = run => left + (last > first ? (Date.parse(run.time) - first) / (last - first) : 0.5) * (width - left - 12);
  const y = value => top + (1 - value / most) * (height - top - bottom);
  const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": points[0].experiment});
  for (const share of [0, 0.5, 1]) {
    svg.append(element("line", {class: "axis", x1: left, x2: width, y1: y(most * share), y2: y(most * share)}),
      element("text", {x: left - 6, y: y(most * share) + 3, "text-anchor": "end"}, shown(most * share)));
  }
  const date = (time, at, anchor) => element("text", {x: at, y: height - 4, "text-anchor": anchor},
    new Date(time).toISOString().slice(0, 16).replace("T", " "));
  if (last > first) svg.append(date(first, left, "start"), date(last, width, "end"));
  else svg.append(date(first, x(points[0]), "middle"));
  const legend = element("div", {class: "legend"});
  const all = [...new Set(points.map(run => run.series))];
  const of = series => points.find(run => run.series === series);
  // Of lines that would have one name: the settings in which they differ.
  const own = run => Object.entries(run.settings).filter(([key, value]) => all.map(of).some(other =>
    other.scheduler === run.scheduler && other.settings[key] !== value)).map(([key, value]) => `, ${key} ${value}`).join("");
  all.forEach((series, index) => {
    const line = points.filter(run => run.series === series), colour = colours[index % colours.length];
    const d = line.map((run, at) => `${at ? "L" : "M"}${x(run).toFixed(1)},${y(middle(run)).toFixed(1)}`).join("");
    svg.append(element("path", {d, stroke: colour, "data-series": series}));
    for (const run of line) {
      const found = values(run);
      svg.append(element("line", {class: "spread", stroke: colour, x1: x(run), x2: x(run),
        y1: y(found[0]), y2: y(found[found.length - 1])}));
      svg.append(element("circle", {cx: x(run), cy: y(middle(run)), r: 3.2, fill: colour, "data-run": run.id},
        element("title", {}, `${run.id} · ${shown(middle(run))} · ${run.status}`)));
    }
    const {nodes, scheduler} = line[0];
    legend.append(element("span", {}, element("b", {style: `background:${colour}`}),
      `${scheduler}, ${nodes.toLocaleString("en")} nodes${own(line[0])}: ${line.length} ${line.length === 1 ? "run" : "runs"}`));
  });
  return [svg, legend];
}

function draw() {
  const list = chosen();
  get("shown").textContent = `${list.length} of ${runs.length} shown`;
  trends(list);
  table(list);
}

for (const key of ["experiment", "scheduler", "status"]) {
  const all = [...new Set(runs.map(run => run[key]))].sort();
  get(key).append(element("option", {value: ""}, "all"), ...all.map(name => element("option", {value: name}, name)));
}
const taken = new Set(runs.flatMap(run => run.measures.flatMap(Object.keys)));
get("measure").append(...Object.keys(measures).filter(name => taken.has(name))
  .map(name => element("option", {value: name}, name)));
if (!taken.size) get("measure").append(element("option", {value: "duration"}, "duration"));
if (taken.has("timeToSchedule.p99")) get("measure").value = "timeToSchedule.p99";
get("heads").append(...columns.map(([name], index) => {
  const head = element("th", {scope: "col"}, name);
  head.addEventListener("click", () => {
    state.descending = state.column === index ? !state.descending : true;
    state.column = index;
    draw();
  });
  return head;
}));
get("filters").addEventListener("input", draw);
addEventListener("resize", () => trends(chosen()));
draw();
