// Jobs and queues next to the map: what each asks for, has, and waits for.

import { bytes, compare, counted, element, number, short } from "./fleet.js";
import { SortedTable } from "./sorted.js";
import { clock } from "./time.js";
import { Why } from "./why.js";

const PAGE = 25;
const ORDER = ["partly", "waiting", "placed", "running", "ended"];
const MOST_REASONS = 6;
const MOST_PLACES = 12;
const YUNIKORN = "YuniKorn queue";

const COLUMNS = [
  ["Job", (job) => job.name],
  ["Queue", (job) => job.queue],
  ["Priority", (job) => job.priority],
  ["Placed", (job) => (job.wanted ? (job.held + job.succeeded) / job.wanted : 0), (job) => `${number(job.held + job.succeeded)} of ${number(job.wanted)}`],
  ["State", (job) => ORDER.indexOf(job.state), (job) => (job.says ? `${job.state} · ${job.says}` : job.state)],
  ["Wait", (job) => job.wait, (job) => clock(job.wait)],
];

export class Jobs extends SortedTable {
  // light: told which nodes, by name, are to be lit on the map; null for all of them. nodes: gives the names of those
  // whose jobs are shown; null for all jobs.
  constructor(place, past, { light, announce, chose = () => {}, letter = "", why, nodes = () => null }) {
    super(COLUMNS, PAGE, 4);
    Object.assign(this, { past, light, announce, chose, nodes });
    this.chosen = -1;
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
    this.why = new Why(why, letter);
    this.before = this.button("Previous", () => this.turn(-1));
    this.after = this.button("Next", () => this.turn(1));
    place.replaceChildren(element("h2", { textContent: "Jobs and queues" }), this.counts,
      element("label", { className: "find" }, "Find jobs ", this.find), this.detail, this.why.place,
      element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": `Table of jobs ${letter}` },
        this.table = element("table", {}, this.caption, element("thead", {}, this.head), this.body)),
      element("nav", { "aria-label": `Pages of jobs ${letter}` }, this.before, this.where, this.after), this.queues);
    this.heads();
  }

  choose(job) {
    this.chosen = job === this.chosen ? -1 : job;
    this.draw();
    this.chose(this.chosen);
    if (this.chosen >= 0) this.announce(this.detail.textContent);
  }

  // Other nodes are meant.
  again() {
    this.page = 0;
    this.draw();
  }

  // The jobs of these nodes at the moment.
  on(names) {
    return new Set(names.flatMap((name) => {
      const node = this.past.numbers.get(name);
      return node === undefined ? [] : [...this.past.history.podsOn[node]].map((pod) => this.past.history.pods[pod][1]);
    }));
  }

  draw() {
    const { history } = this.past;
    // A group that has turned out to speak for a job has no row of its own.
    const all = history.jobsNow().filter(({ number }) => history.fact[number] >= 0 || history.podsOf[number].length);
    const states = new Map();
    for (const { state } of all) states.set(state, (states.get(state) ?? 0) + 1);
    put(this.counts, all.length ? ORDER.filter((state) => states.has(state)).map((state) => `${number(states.get(state))} ${state}`).join(" · ") : "No jobs yet");
    const [, value] = COLUMNS[this.column];
    const order = (a, b) => (typeof a === "number" ? a - b : compare(a, b));
    const words = (job) => `${job.name} ${job.kind} ${job.of} ${job.queue} ${job.state} ${job.says}`.toLowerCase();
    const nodes = this.nodes();
    const of = nodes && this.on(nodes);
    const jobs = all.filter((job) => (!of || of.has(job.number)) && this.words.every((word) => words(job).includes(word)))
      .sort((a, b) => (this.down ? -1 : 1) * order(value(a), value(b)) || b.wait - a.wait || compare(a.name, b.name));
    // A column in which no job has anything is not shown.
    this.table.classList.toggle("no-queue", !all.some(({ queue }) => queue));
    this.table.classList.toggle("no-priority", !all.some(({ priority }) => priority));
    this.show(jobs, nodes);
    this.drawQueues(all);
    this.drawChosen();
  }

  show(jobs, nodes) {
    const [shown, pages] = this.paged(jobs);
    put(this.caption, `${counted(jobs.length, "job")}${nodes ? ` on ${nodes.length === 1 ? nodes[0] : counted(nodes.length, "node")}` : ""}`);
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
    const { history } = this.past;
    const told = history.queuesNow();
    const rows = new Map();
    const row = (name) => rows.get(name) ?? rows.set(name, { waiting: 0, placed: 0, held: 0, gpus: 0, told: [] }).get(name);
    for (const job of all) {
      if (!job.queue) continue;
      const found = row(job.queue);
      if (job.state === "waiting" || job.state === "partly") found.waiting++;
      else if (job.state !== "ended") found.placed++;
      found.held += job.held;
      found.gpus += job.gpus;
    }
    for (const queue of told) row(queue.name).told.push(queue.kind === YUNIKORN ? { ...queue, used: used(history, all, queue) } : queue);
    for (const [name, found] of rows) {
      // A queue above others' has no jobs that name it: it says itself what is below it.
      if (!found.waiting && !found.placed && !found.held) rows.set(name, { ...found, ...above(found.told) });
    }
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
    this.why.draw(history, this.chosen);
    if (this.chosen < 0) {
      this.light(null);
      this.toldChosen = "";
      return;
    }
    const job = history.job(this.chosen);
    const where = history.where(this.chosen);
    const nodes = [...where.keys()].map((node) => this.past.nodes.get(history.nodes[node][0])).filter(Boolean);
    const room = history.room(this.chosen);
    const named = (rows) => new Set([...(rows?.keys() ?? [])].map((node) => history.nodes[node][0]));
    this.light(new Set(nodes.map(({ name }) => name)), named(room?.fit), named(room?.free));
    const lines = [
      `${short(job.kind)} ${short(job.name)}: ${job.state}, ${number(job.held + job.succeeded)} of ${counted(job.wanted, "pod")} placed, priority ${job.priority}${job.queue ? `, queue ${short(job.queue)}` : ""}`,
      places("Zones", nodes, "zone", where), places("Racks", nodes, "rack", where),
      ...(room ? needs(room, history.nodes) : []),
      ...history.reasons(this.chosen).slice(0, MOST_REASONS).map(([reason, count]) => `${number(count)} × ${short(reason)}`),
    ].filter(Boolean);
    const text = lines.join("\n");
    if (text === this.toldChosen) return;
    this.toldChosen = text;
    const close = element("button", { type: "button", className: "close", textContent: "All jobs", onclick: () => this.choose(this.chosen) });
    this.detail.replaceChildren(close, ...lines.map((textContent) => element("p", { textContent })));
  }
}

// What a job's waiting pods lack, in words.
function needs(room, nodes) {
  const asked = amounts(room.asks.slice(0, 3));
  const apart = room.apart.length ? `; not looked at: ${room.apart.join(", ")}` : "";
  const by = room.known ? `may take one by selectors, affinity, taints and devices${apart}` : "are large enough; selectors, affinity and taints are not recorded";
  const fit = [...room.fit.values()].reduce((sum, each) => sum + each, 0);
  const lines = [`${counted(room.waiting, "pod")} more of ${asked} each: ${number(room.may.length)} of ${counted(room.of, "node")} ${by}`,
    `free now: ${room.fit.size ? `${counted(room.fit.size, "node")} with room for ${number(fit)} (ringed)` : "none has room"}`];
  if (fit >= room.waiting) return lines;
  const least = [...room.free].slice(0, MOST_PLACES).map(([node, lacks]) => `${short(nodes[node][0])} ${amounts(lacks)}`);
  const more = room.free.size > MOST_PLACES ? ` and ${counted(room.free.size - MOST_PLACES, "more node")}` : "";
  lines.push(least.length ? `for ${room.waiting - fit > room.free.size ? `${number(room.free.size)} of the other ${number(room.waiting - fit)}` : `the other ${number(room.waiting - fit)}`}, the least that would have to be free (dashed): ${least.join(", ")}${more}`
    : "no node that it may go to is large enough for one more, however free");
  return lines;
}

function amounts([gpus, cpu, memory, pods = 0]) {
  return [gpus && counted(gpus, "GPU"), cpu && `${number(cpu / 1000)} cores`, memory && `${bytes(memory)} memory`, pods && counted(pods, "pod")]
    .filter(Boolean).join(" + ") || "nothing";
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
  const parts = Object.entries(of).map(([name, amount]) => short(`${name} ${used[name] ?? 0} of ${amount}`));
  return `${short(kind)}: ${parts.join(", ") || "no quota"}${waiting || admitted ? `, ${number(waiting)} waiting, ${number(admitted)} admitted` : ""}`;
}

// What jobs hold of a queue that does not say so itself, with all queues below it.
function used(history, all, { name, quota: of }) {
  const held = [0, 0, 0];
  for (const { number: job, queue } of all) {
    if (queue !== name && !queue.startsWith(`${name}.`)) continue;
    for (const pod of history.podsOf[job]) {
      if (history.holds(pod)) held.forEach((_, part) => (held[part] += history.requests[history.pods[pod][2]][part]));
    }
  }
  const gpus = Object.keys(of).find((resource) => resource.endsWith("/gpu"));
  return { vcore: String(held[1] / 1000), memory: bytes(held[2]), [gpus]: String(held[0]) };
}

function above(told) {
  const found = { waiting: 0, placed: 0, gpus: 0 };
  for (const { waiting, admitted, used: taken } of told) {
    found.waiting += waiting;
    found.placed += admitted;
    for (const [resource, amount] of Object.entries(taken)) if (resource.endsWith("/gpu")) found.gpus += Number(amount) || 0;
  }
  return found;
}

function put(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

