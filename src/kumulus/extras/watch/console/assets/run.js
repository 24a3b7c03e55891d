// The page of recorded runs: one, or two side by side on one time line.

import { counted, element, number, percent } from "./fleet.js";
import { Gantt } from "./gantt.js";
import { History } from "./history.js";
import { Jobs } from "./jobs.js";
import { FleetMap } from "./map.js";
import { NodePanel } from "./node.js";
import { Past } from "./past.js";
import { TimeLine, clock } from "./time.js";

const part = (id) => document.getElementById(id);
const announce = (text) => (part("says").textContent = text);
// Tables are read, not watched: a few times a second is enough for them.
const READ_EVERY = 200;
let words = [];

class Side {
  constructor(plain, letter, legend) {
    this.letter = letter;
    this.past = new Past(new History(plain));
    this.why = plain.why;
    const { about } = this.past.history;
    const canvas = element("canvas", { tabIndex: 0, role: "application", "aria-roledescription": "fleet map", "aria-label": `Fleet map ${letter}` });
    const tip = element("div", { className: "tip", role: "tooltip", hidden: true });
    this.result = element("p", { className: "result" });
    this.says = element("p", { className: "sums" });
    this.panel = new NodePanel(element("aside", { className: "panel", tabIndex: -1, hidden: true }), async (name) => this.past.peek(name));
    this.gantt = element("section", { "aria-label": `Jobs over time ${letter}` });
    this.jobs = element("section", { className: "jobs", "aria-label": `Jobs ${letter}` });
    const title = `${letter ? `${letter}: ` : ""}${about.title} · ${about.scheduler}${about.run ? ` · ${about.run}` : ""}`;
    this.place = element("section", { className: "side", "aria-label": title },
      element("h2", { textContent: title.slice(0, 300) }), element("p", { className: "quiet", textContent: (about.description ?? "").slice(0, 600) }),
      this.result, this.says, element("div", { className: "side-by-side" },
        element("div", { className: "mapped" }, element("div", { className: "map" }, canvas, tip), this.panel.panel, this.gantt), this.jobs));
    this.parts = { canvas, tip, legend };
  }

  // Once it is on the page, so that widths are known.
  begin(span) {
    const { past } = this;
    this.map = new FleetMap(past, { ...this.parts, announce, open: (name) => this.open(name), peek: async (name) => past.peek(name), share: 0.55 });
    this.table = new Jobs(this.jobs, past, { announce, letter: this.letter, why: this.why, nodes: () => (this.panel.name ? [this.panel.name] : this.found()), light: (...sets) => this.map.light(...sets), chose: (job) => {
      this.chart.chosen = job;
      this.chart.draw();
    } });
    this.chart = new Gantt(this.gantt, past.history, { span, letter: this.letter, choose: (job) => this.table.choose(job) });
    past.addEventListener("nodes", ({ detail }) => this.map.changed(detail));
    this.panel.closed = () => this.table.again();
    this.map.layout();
    this.sum();
  }

  // One line of result: what was so when the most pods had a node, and what came of all of them.
  sum() {
    const { history } = this.past;
    const { pods, jobs } = history.outcome();
    const was = history.at;
    const when = history.fullest();
    this.past.seek(when);
    const { allocatable, allocated } = this.past.headline();
    this.past.seek(was);
    const gpus = allocatable.gpus ? `${percent(allocated.gpus, allocatable.gpus)} of the GPUs allocated at ${clock(when)}, ` : "";
    const whole = history.jobs.length ? `, ${number(jobs)} of ${counted(history.jobs.length, "job")} whole` : "";
    const unheard = [history.about.unheard ?? []].flat().join("; ").slice(0, 600);
    const lacks = unheard && `. Times are as they were heard, and not all was heard in time: ${unheard}`;
    const assumed = [history.about.assumed ?? []].flat().map(text => `. ${text}`).join("");
    this.result.textContent = `Result: ${gpus}${number(pods)} of ${counted(history.pods.length, "pod")} had a node${whole}${lacks}${assumed}`;
  }

  open(name) {
    this.panel.open(name);
    this.table.again();
  }

  // The nodes that are searched for, as they are at the moment; null without a search.
  found() {
    return words.length ? [...this.past.nodes.values()].filter(this.map.matches).map(({ name }) => name) : null;
  }

  seek(at, read) {
    this.past.seek(at);
    this.chart.at(at);
    if (!read) return;
    this.read();
    this.panel.refresh();
  }

  read() {
    const { nodes, nodesByState, allocatable, allocated } = this.past.headline();
    const statuses = this.past.history.podsByStatus();
    const states = Object.entries(nodesByState).map(([state, count]) => `${number(count)} ${state}`).join(", ");
    const gpus = allocatable.gpus ? ` · ${number(allocated.gpus)} of ${counted(allocatable.gpus, "GPU")} allocated (${percent(allocated.gpus, allocatable.gpus)})` : "";
    const pods = statuses.slice(1).some(Boolean)
      ? `${number(statuses[1])} waiting, ${number(statuses[2])} bound, ${number(statuses[3])} running, ${number(statuses[6])} completed${statuses[4] ? `, ${number(statuses[4])} being preempted` : ""}`
      : "no pods yet";
    this.says.textContent = `${counted(nodes, "node")}${states ? ` (${states})` : ""}${gpus} · pods: ${pods}`;
    this.map.canvas.setAttribute("aria-label", `Fleet map, ${this.says.textContent}`);
    this.table.draw();
  }
}

const told = [...document.querySelectorAll("script[type='application/json']")].map((each) => JSON.parse(each.textContent));
const sides = told.map((plain, n) => new Side(plain, told.length > 1 ? "AB"[n] : "", part("legend")));
// What JSON has become is not kept twice.
document.querySelectorAll("script[type='application/json']").forEach((each) => each.remove());
part("main").className = sides.length > 1 ? "two" : "one";
part("main").replaceChildren(...sides.map(({ place }) => place));
// What both have in common is said once.
const each = (say) => [...new Set(sides.map(say))];
part("title").textContent = each(({ past }) => past.stack.slice(0, 200)).join(" and ");
document.title = `${part("title").textContent} · Kumulus`;
const counts = each(({ past: { history } }) => `${counted(history.nodes.length, "node")}, ${counted(history.pods.length, "pod")}, ${counted(history.jobs.length, "job")}`);
part("headline").textContent = `${counts.length < sides.length ? "A and B: " : ""}${counts.map((text, n) => (counts.length > 1 ? `${"AB"[n]}: ${text}` : text)).join(" · ")}`;

let last = 0;
let due = null;
const line = new TimeLine(part("time"), sides.map(({ past }) => past.history), { move });
sides.forEach((side) => side.begin(() => line));

function move(at) {
  const now = performance.now();
  const read = now - last > READ_EVERY;
  clearTimeout(due);
  if (read) last = now;
  else due = setTimeout(() => seek(line.at, true), READ_EVERY);
  seek(at, read);
}

function seek(at, read) {
  sides.forEach((side) => side.seek(at, read));
  if (read) count();
}

function count() {
  part("found").textContent = words.length ? `${number(sides[0].found().length)} found` : "";
}

function choose() {
  const { colour } = Object.fromEntries(new FormData(part("controls")));
  words = part("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (node) => words.every((word) => node.words.includes(word));
  for (const { map, table } of sides) {
    map.colours.mode = colour;
    map.matches = matches;
    map.recolour();
    table.again();
  }
  count();
}

part("controls").addEventListener("input", choose);
part("controls").addEventListener("submit", (event) => event.preventDefault());
addEventListener("resize", () => sides.forEach(({ map }) => map.layout()));

// A link to a moment ends with #t=100s; the page opens there, or when the most pods had a node.
const SECONDS = { ms: 1e-3, s: 1, m: 60, h: 3600 };

function linked() {
  const [, amount, unit = "s"] = /^#t=(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(location.hash) ?? [];
  return amount === undefined ? null : Number(amount) * SECONDS[unit] * 1000;
}

part("time").addEventListener("change", ({ target }) => {
  if (target.type === "range") history.replaceState(null, "", `#t=${(line.at / 1000).toFixed(1)}s`);
});
addEventListener("hashchange", () => {
  if (linked() !== null) line.want(linked());
});
line.want(linked() ?? Math.max(...sides.map(({ past }) => past.history.fullest())));
line.show();

// For measuring and testing from outside.
globalThis.kumulus = {
  seek: (at) => {
    line.at = at;
    line.show();
  },
  plain: (side = 0) => sides[side].past.history.plain(),
  map: (side = 0) => sides[side].map,
  frames: () => [...line.frames],
  line: () => ({ at: line.at, begin: line.begin, end: line.end, playing: line.playing }),
  choose: (name, side = 0) => sides[side].table.choose(sides[side].past.history.jobs.findIndex(([each]) => each === name)),
};
