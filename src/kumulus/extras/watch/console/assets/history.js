// What happened, and what was so at any moment of it: events are applied, and taken back, one by one.
// The format is that of kumulus.extras.watch.history; its numbers are in document.py.

import { room } from "./room.js";

export const NODE = 0, POD = 1, JOB = 2, QUEUE = 3, HAPPENED = 4;
export const WAITING = 1, BOUND = 2, RUNNING = 3, PREEMPTED = 4, EVICTED = 5, SUCCEEDED = 6, FAILED = 7, GONE = 8;
export const JOB_STATES = ["waiting", "partly", "placed", "running", "ended"];
// What objects say of a job that is over; as kumulus.extras.watch.history.moment has it.
const OVER = new Set(["Complete", "Completed", "Failed", "Finished"]);
const FIVE = 5;
const TABLES = ["nodes", "conditions", "jobs", "facts", "queues", "figures", "requests", "rules", "pods", "texts", "events"];
const holds = (status) => status >= BOUND && status <= EVICTED;

export class History {
  constructor(plain) {
    this.about = plain.about;
    this.begin = plain.begin;
    this.end = plain.end;
    for (const name of TABLES) this[name] = [];
    // Per row of its table, what is so at the moment.
    this.condition = [];
    this.nature = [];
    this.taken = [];
    this.status = [];
    this.place = [];
    this.tally = [];
    this.fact = [];
    this.figure = [];
    this.podsOn = [];
    this.podsOf = [];
    // Queues of a namespace, by namespace/name.
    this.namespaced = new Set();
    // Of each kind of pods, the kinds of nodes that may take them.
    this.fits = new Map();
    // Per event, what it took the place of.
    this.before = [];
    this.beforePlace = [];
    this.position = 0;
    this.at = plain.begin;
    this.touched = new Set();
    this.append(plain);
  }

  // More of it: rows and events that come after those there are.
  append(plain) {
    const was = this.at;
    for (const name of TABLES) for (const row of plain[name]) this[name].push(row);
    for (const [shape, nature] of plain.fits) {
      if (!this.fits.has(shape)) this.fits.set(shape, new Set());
      this.fits.get(shape).add(nature);
    }
    for (let n = this.condition.length; n < this.nodes.length; n++) {
      this.condition.push(-1);
      this.nature.push(-1);
      this.taken.push([0, 0, 0, 0]);
      this.podsOn.push(new Set());
    }
    for (let n = this.status.length; n < this.pods.length; n++) {
      this.status.push(0);
      this.place.push(-1);
    }
    for (let n = this.tally.length; n < this.jobs.length; n++) {
      this.tally.push({ waiting: 0, held: 0, gpus: 0, running: 0, succeeded: 0, lost: 0, first: -1, whole: -1, spans: [] });
      this.fact.push(-1);
      this.podsOf.push([]);
    }
    for (let n = this.pods.length - plain.pods.length; n < this.pods.length; n++) this.podsOf[this.pods[n][1]].push(n);
    for (const [name, kind] of plain.queues) if (kind === "LocalQueue") this.namespaced.add(name);
    while (this.figure.length < this.queues.length) this.figure.push(-1);
    this.end = Math.max(this.end, plain.end);
    // Played through once: when jobs came to be whole, and how they were from when to when.
    for (let n = this.length() - plain.events.length / FIVE; n < this.length(); n++) {
      if (this.position < n) this.seek(this.events[n * FIVE] - 1);
      if (this.position <= n) this.learn(n);
    }
    this.seek(was);
  }

  length() {
    return this.events.length / FIVE;
  }

  learn(n) {
    while (this.position <= n) this.forward();
    const kind = this.events[n * FIVE + 1];
    const what = this.events[n * FIVE + 2];
    if (kind !== POD && kind !== JOB) return;
    const time = this.events[n * FIVE];
    const job = kind === POD ? this.pods[what][1] : what;
    const tally = this.tally[job];
    if (tally.first < 0) tally.first = time;
    if (tally.whole < 0 && tally.held && tally.held + tally.succeeded >= this.wanted(job)) tally.whole = time;
    const state = this.jobState(job);
    const last = tally.spans[tally.spans.length - 1];
    if (last?.state === state) return;
    // Many things happen in a millisecond, of which the last counts.
    if (last?.from === time) tally.spans.pop();
    tally.spans.push({ state, from: time });
  }

  // The last moment at which the most pods had a node: what is worth a look first. The end if none ever had one.
  fullest() {
    let held = 0;
    let most = 0;
    let at = this.end;
    for (let n = 0; n < this.length(); n++) {
      const [time, kind, , one] = this.event(n);
      if (kind !== POD) continue;
      const was = held;
      held += holds(one) - holds(this.before[n]);
      if (held > most) [most, at] = [held, this.end];
      else if (was === most && held < was) at = time - 1;
      else if (held === most && held > was) at = this.end;
    }
    return at;
  }

  // What came of it: how many pods ever had a node, and how many jobs were ever whole.
  outcome() {
    const placed = new Set();
    for (let n = 0; n < this.length(); n++) {
      const [, kind, what, one] = this.event(n);
      if (kind === POD && holds(one)) placed.add(what);
    }
    return { pods: placed.size, jobs: this.tally.filter(({ whole }) => whole >= 0).length };
  }

  // --- moving in time ---

  seek(at) {
    this.at = at;
    while (this.position < this.length() && this.events[this.position * FIVE] <= at) this.forward();
    while (this.position > 0 && this.events[(this.position - 1) * FIVE] > at) this.back();
  }

  forward() {
    const n = this.position++;
    const [, kind, what, one, other] = this.event(n);
    if (kind === POD) {
      this.before[n] = this.status[what];
      this.beforePlace[n] = this.place[what];
      this.pod(what, one, other);
    } else if (kind !== HAPPENED) {
      const rows = this.rows(kind);
      this.before[n] = rows[what];
      rows[what] = one;
      if (kind === NODE) {
        this.beforePlace[n] = this.nature[what];
        this.nature[what] = other;
        this.touched.add(what);
      }
    }
  }

  back() {
    const n = --this.position;
    const [, kind, what] = this.event(n);
    if (kind === POD) {
      this.pod(what, this.before[n], this.beforePlace[n]);
    } else if (kind !== HAPPENED) {
      this.rows(kind)[what] = this.before[n];
      if (kind === NODE) {
        this.nature[what] = this.beforePlace[n];
        this.touched.add(what);
      }
    }
  }

  event(n) {
    const { events } = this;
    const from = n * FIVE;
    return [events[from], events[from + 1], events[from + 2], events[from + 3], events[from + 4]];
  }

  rows(kind) {
    return kind === NODE ? this.condition : kind === JOB ? this.fact : this.figure;
  }

  pod(number, status, place) {
    this.count(number, -1);
    this.status[number] = status;
    this.place[number] = place;
    this.count(number, 1);
  }

  count(number, sign) {
    const status = this.status[number];
    if (!status) return;
    const [, job, asked] = this.pods[number];
    const tally = this.tally[job];
    if (status === WAITING) tally.waiting += sign;
    else if (status === SUCCEEDED) tally.succeeded += sign;
    else if (status >= FAILED) tally.lost += sign;
    else {
      const node = this.place[number];
      tally.held += sign;
      tally.gpus += sign * this.requests[asked][0];
      if (status === RUNNING) tally.running += sign;
      const taken = this.taken[node];
      for (let part = 0; part < 3; part++) taken[part] += sign * this.requests[asked][part];
      taken[3] += sign;
      if (sign > 0) this.podsOn[node].add(number);
      else this.podsOn[node].delete(number);
      this.touched.add(node);
    }
  }

  // --- what is so ---

  wanted(job) {
    const { waiting, held, succeeded } = this.tally[job];
    return this.facts[this.fact[job]]?.[0] || waiting + held + succeeded;
  }

  jobState(job) {
    const { waiting, held, running, succeeded, lost } = this.tally[job];
    if (!waiting && !held && this.over(job, succeeded, lost)) return "ended";
    if (!held) return "waiting";
    const wanted = this.wanted(job);
    if (held + succeeded < wanted) return "partly";
    return running + succeeded >= wanted ? "running" : "placed";
  }

  // Whether no more pods are to come: those that were lost are made again, of whatever has a size.
  over(job, succeeded, lost) {
    const facts = this.facts[this.fact[job]];
    // Gone, or never told of: then it is its pods.
    if (!facts) return true;
    const [size, , , says] = facts;
    if (OVER.has(says)) return true;
    return size && this.jobs[job][1] !== "Pod" ? succeeded >= size : succeeded + lost > 0;
  }

  job(number) {
    const [name, kind, of] = this.jobs[number];
    const tally = this.tally[number];
    const [, queue = "", priority = 0, says = "", since = null] = this.facts[this.fact[number]] ?? [];
    const { waiting, held, gpus, running, succeeded, lost } = tally;
    const whole = tally.whole >= 0 && tally.whole <= this.at;
    const wait = (whole ? tally.whole : this.at) - (since ?? tally.first);
    return { number, name, kind, of, queue: this.queueOf(number, queue), priority, says, waiting, held, gpus, running, succeeded, lost, wait,
      wanted: this.wanted(number), state: this.jobState(number) };
  }

  // Which queue a job means by a name: queues of Kueue of one name may be in several namespaces. Jobs of an experiment
  // have their workload in place of their namespace, and those that Kueue suspends have no pod that would tell it.
  queueOf(job, name) {
    const [pod] = this.podsOf[job];
    const namespace = pod === undefined ? this.about.namespace ?? this.jobs[job][2] : this.pods[pod][0].split("/")[0];
    return this.namespaced.has(`${namespace}/${name}`) ? `${namespace}/${name}` : name;
  }

  // Jobs that there are, or were, at the moment.
  jobsNow() {
    const found = [];
    this.tally.forEach(({ first }, number) => {
      if (first >= 0 && first <= this.at) found.push(this.job(number));
    });
    return found;
  }

  room(job) {
    return room(this, job);
  }

  // Why a job's pods wait, with their number, the most frequent first.
  reasons(job) {
    const found = new Map();
    for (const pod of this.podsOf[job]) {
      if (this.status[pod] !== WAITING) continue;
      for (const each of this.texts[this.place[pod]].split("\n")) found.set(each, (found.get(each) ?? 0) + 1);
    }
    return [...found].sort(([, a], [, b]) => b - a);
  }

  // The nodes that a job has, by number, with how many of its pods.
  where(job) {
    const found = new Map();
    for (const pod of this.podsOf[job]) {
      if (holds(this.status[pod])) found.set(this.place[pod], (found.get(this.place[pod]) ?? 0) + 1);
    }
    return found;
  }

  // The names of a job's pods that have been given a node, whatever became of them since.
  placed(job) {
    return this.podsOf[job].filter((pod) => this.status[pod] >= BOUND && this.status[pod] < GONE).map((pod) => this.pods[pod][0]);
  }

  // Whether a pod has a place on a node.
  holds(pod) {
    return holds(this.status[pod]);
  }

  queuesNow() {
    return this.queues.flatMap(([name, kind], number) => {
      const figures = this.figures[this.figure[number]];
      return figures ? [{ name, kind, quota: figures[0], used: figures[1], waiting: figures[2], admitted: figures[3] }] : [];
    });
  }

  podsByStatus() {
    const found = new Array(GONE + 1).fill(0);
    for (const status of this.status) found[status]++;
    return found;
  }

  // What happened from one time to another, as [time, kind, what, one, other], the latest last; at most so many.
  between(from, to, most) {
    const found = [];
    let n = this.position - 1;
    for (; n >= 0 && this.events[n * FIVE] > to; n--);
    for (; n >= 0 && this.events[n * FIVE] >= from && found.length < most; n--) found.push(this.event(n));
    return found.reverse();
  }

  // Everything, for whoever compares.
  plain() {
    const name = (number) => this.nodes[number][0];
    const present = this.condition.flatMap((condition, n) => (condition < 0 ? [] : [n]));
    const has = (n) => this.conditions[this.condition[n]].slice(2);
    const named = (rows) => Object.fromEntries([...rows].map(([n, value]) => [name(n), value]));
    const roomOf = (found) => found && { may: found.may.map(name).sort(), fit: named(found.fit), free: named(found.free) };
    const sum = (rows) => rows.reduce((total, row) => total.map((each, part) => each + row[part]), [0, 0, 0, 0]);
    return {
      nodes: Object.fromEntries(present.map((n) => [name(n), [this.conditions[this.condition[n]][0], has(n), [...this.taken[n]]]])),
      jobs: Object.fromEntries(this.jobsNow().map((job) => [[job.of, job.kind, job.name].join("/"), {
        state: job.state, waiting: job.waiting, held: job.held, running: job.running, succeeded: job.succeeded, lost: job.lost,
        reasons: Object.fromEntries(this.reasons(job.number)),
        nodes: named(this.where(job.number)),
        room: roomOf(this.room(job.number)),
      }])),
      has: sum(present.map(has)),
      taken: sum(present.map((n) => this.taken[n])),
      queues: Object.fromEntries(this.queuesNow().map(({ name, kind, quota, used, waiting, admitted }) => [`${kind}/${name}`, [quota, used, waiting, admitted]])),
      pods: Object.fromEntries(this.podsByStatus().flatMap((count, status) => (status && count ? [[status, count]] : []))),
    };
  }
}
