// Jobs and queues beside the map: what each asks for, has, and waits for.

import { compare, counted, element, number, short } from "./fleet.js";
import { SortedTable } from "./sorted.js";
import { clock } from "./time.js";

const PAGE = 25;
const ORDER = ["partly", "waiting", "placed", "running", "ended"];
const MOST_REASONS = 6;
const MOST_PLACES = 12;

const COLUMNS = [
  ["Job", (job) => job.name],
  ["Queue", (job) => job.queue],
  ["Priority", (job) => job.priority],
  ["Placed", (job) => (job.wanted ? (job.held + job.succeeded) / job.wanted : 0), (job) => `${number(job.held + job.succeeded)} of ${number(job.wanted)}`],
  ["State", (job) => ORDER.indexOf(job.state), (job) => (job.says ? `${job.state} · ${job.says}` : job.state)],
  ["Wait", (job) => job.wait, (job) => clock(job.wait)],
];

export class Jobs extends SortedTable {
  // light: told which nodes, by name, are to be lit on the map; null for all of them.
  constructor(place, past, { light, announce, chose = () => {}, letter = "" }) {
    super(COLUMNS, PAGE, 4);
    Object.assign(this, { past, light, announce, chose });
    this.chosen = -1;
    this.of = null;
    this.words = [];
    this.find = element("input", { type: "search", placeholder: "job, queue or state", autocomplete: "off" });
    this.find.addEventListener("input", () => {
      this.words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.page = 0;
      this.draw();
    });
    this.counts = element("p", { role: "status" });
    this.queues = element("div", { className: "queues", tabIndex: 0, role: "region", "aria-label": `Queues ${letter}` });
    this.detail = element("div", { className: "chosen", hidden: true });
    this.before = this.button("Previous", () => this.turn(-1));
    this.after = this.button("Next", () => this.turn(1));
    place.replaceChildren(element("h2", { textContent: "Jobs and queues" }), this.counts,
      element("label", { className: "find" }, "Find jobs ", this.find), this.detail,
      element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": `Table of jobs ${letter}` },
        element("table", {}, this.caption, element("thead", {}, this.head), this.body)),
      element("nav", { "aria-label": `Pages of jobs ${letter}` }, this.before, this.where, this.after), this.queues);
    this.heads();
  }

  choose(job) {
    this.chosen = job === this.chosen ? -1 : job;
    this.draw();
    this.chose(this.chosen);
    if (this.chosen >= 0) this.announce(this.detail.textContent);
  }

  // The jobs of some nodes only; null for all.
  onNodes(names) {
    this.of = names && new Set(names.flatMap((name) => {
      const node = this.past.numbers.get(name);
      return node === undefined ? [] : [...this.past.history.podsOn[node]].map((pod) => this.past.history.pods[pod][1]);
    }));
    this.nodes = names;
    this.page = 0;
    this.draw();
  }

  draw() {
    const { history } = this.past;
    const all = history.jobsNow();
    const states = new Map();
    for (const { state } of all) states.set(state, (states.get(state) ?? 0) + 1);
    put(this.counts, all.length ? ORDER.filter((state) => states.has(state)).map((state) => `${number(states.get(state))} ${state}`).join(" · ") : "No jobs yet");
    const [, value] = COLUMNS[this.column];
    const order = (a, b) => (typeof a === "number" ? a - b : compare(a, b));
    const words = (job) => `${job.name} ${job.kind} ${job.of} ${job.queue} ${job.state} ${job.says}`.toLowerCase();
    const jobs = all.filter((job) => (!this.of || this.of.has(job.number)) && this.words.every((word) => words(job).includes(word)))
      .sort((a, b) => (this.down ? -1 : 1) * order(value(a), value(b)) || b.wait - a.wait || compare(a.name, b.name));
    this.show(jobs);
    this.drawQueues(all);
    this.drawChosen();
  }

  show(jobs) {
    const [shown, pages] = this.paged(jobs);
    put(this.caption, `${counted(jobs.length, "job")}${this.of ? ` on ${this.nodes.length === 1 ? this.nodes[0] : counted(this.nodes.length, "node")}` : ""}`);
    put(this.where, `page ${this.page + 1} of ${number(pages)}`);
    const rows = shown.map((job) => [job, COLUMNS.map(([, value, text]) => String((text ?? value)(job) || "–"))]);
    const told = JSON.stringify([rows.map(([{ number }, cells]) => [number, cells]), this.chosen]);
    // Rows that say what they said are left alone: who reads or points at them stays where they are.
    if (told === this.told) return;
    this.told = told;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.job : undefined;
    this.body.replaceChildren(...rows.map(([job, cells]) => this.row(job, cells)));
    if (focused !== undefined) [...this.body.querySelectorAll("button")].find((button) => button.dataset.job === focused)?.focus();
  }

  row(job, [name, ...cells]) {
    const button = element("button", { type: "button", textContent: short(name), title: `${job.kind} ${job.of}/${name}`.slice(0, 300),
      "aria-pressed": String(job.number === this.chosen), onclick: () => this.choose(job.number) });
    button.dataset.job = String(job.number);
    return element("tr", { className: job.state }, element("th", { scope: "row" }, button),
      ...cells.map((textContent) => element("td", { textContent: short(textContent) })));
  }

  drawQueues(all) {
    const told = this.past.history.queuesNow();
    const rows = new Map();
    const row = (name) => rows.get(name) ?? rows.set(name, { waiting: 0, placed: 0, held: 0, gpus: 0, told: [] }).get(name);
    for (const job of all) {
      if (!job.queue) continue;
      const found = row(job.queue);
      if (job.state === "waiting" || job.state === "partly") found.waiting++;
      else if (job.state !== "ended") found.placed++;
      found.held += job.held;
      found.gpus += job.held * job.gpus;
    }
    for (const queue of told) row(queue.name).told.push(queue);
    const text = JSON.stringify([...rows]);
    if (text === this.toldQueues) return;
    this.toldQueues = text;
    this.queues.hidden = !rows.size;
    const heads = ["Queue", "Waiting", "Placed", "GPUs held", "Use of quota"].map((name) => element("th", { scope: "col", textContent: name }));
    const cells = ([name, { waiting, placed, gpus, told: of }]) => element("tr", {}, element("th", { scope: "row", textContent: short(name) }),
      ...[number(waiting), number(placed), number(gpus), of.map(quota).join("; ") || "–"].map((textContent) => element("td", { textContent })));
    this.queues.replaceChildren(element("table", {}, element("caption", { textContent: counted(rows.size, "queue") }),
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...[...rows].sort(([a], [b]) => compare(a, b)).slice(0, 100).map(cells))));
  }

  drawChosen() {
    const { history } = this.past;
    this.detail.hidden = this.chosen < 0;
    if (this.chosen < 0) {
      this.light(null);
      this.toldChosen = "";
      return;
    }
    const job = history.job(this.chosen);
    const where = history.where(this.chosen);
    const nodes = [...where.keys()].map((node) => this.past.nodes.get(history.nodes[node][0])).filter(Boolean);
    this.light(new Set(nodes.map(({ name }) => name)), new Set(job.waiting ? this.room(this.chosen).map(({ name }) => name) : []));
    const lines = [
      `${short(job.kind)} ${short(job.name)}: ${job.state}, ${number(job.held + job.succeeded)} of ${counted(job.wanted, "pod")} placed, priority ${job.priority}${job.queue ? `, queue ${short(job.queue)}` : ""}`,
      places("Zones", nodes, "zone", where), places("Racks", nodes, "rack", where),
      ...(job.waiting ? [this.needs(job)] : []),
      ...history.reasons(this.chosen).slice(0, MOST_REASONS).map(([reason, count]) => `${number(count)} × ${short(reason)}`),
    ].filter(Boolean);
    const text = lines.join("\n");
    if (text === this.toldChosen) return;
    this.toldChosen = text;
    const close = element("button", { type: "button", className: "close", textContent: "All jobs", onclick: () => this.choose(this.chosen) });
    this.detail.replaceChildren(close, ...lines.map((textContent) => element("p", { textContent })));
  }

  // Nodes that have room for one more pod of a job, as far as amounts go.
  room(job) {
    const asks = [0, 1, 2].map((part) => this.past.history.asked(job, part));
    return [...this.past.nodes.values()].filter((node) => node.state === "ready" &&
      node.gpus - node.gpusTaken >= asks[0] && node.cpu - node.cpuTaken >= asks[1] && node.memory - node.memoryTaken >= asks[2]);
  }

  needs({ number: job, waiting }) {
    const [gpus, cpu] = [0, 1].map((part) => this.past.history.asked(job, part));
    const asks = [gpus && counted(gpus, "GPU"), cpu && `${number(cpu / 1000)} cores`].filter(Boolean).join(", ") || "nothing";
    return `${counted(waiting, "pod")} more of ${asks} each: ${counted(this.room(job).length, "ready node")} with so much free (ringed); selectors, taints and affinity apart`;
  }
}

function places(title, nodes, part, where) {
  const found = new Map();
  for (const node of nodes) {
    if (node[part]) found.set(node[part], (found.get(node[part]) ?? 0) + where.get(node.number));
  }
  if (!found.size) return "";
  const all = [...found].sort(([a], [b]) => compare(a, b));
  const more = all.length > MOST_PLACES ? ` and ${number(all.length - MOST_PLACES)} more` : "";
  return `${title}: ${all.slice(0, MOST_PLACES).map(([name, count]) => `${short(name)} (${number(count)})`).join(", ")}${more}`;
}

function quota({ kind, quota: of, used, waiting, admitted }) {
  const parts = Object.entries(of).map(([name, amount]) => `${name} ${used[name] ?? 0} of ${amount}`);
  return `${kind}: ${parts.join(", ") || "no quota"}${waiting || admitted ? `, ${number(waiting)} waiting, ${number(admitted)} admitted` : ""}`;
}

function put(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

