// A history as a fleet: the map, the table and the panel show it as they show the one that is now.

import { Fleet } from "./fleet.js";
import { BOUND, EVICTED, PREEMPTED, RUNNING } from "./history.js";

const PHASES = { [BOUND]: "Pending", [RUNNING]: "Running", [PREEMPTED]: "Preempted", [EVICTED]: "Evicted" };
const PARTS = ["gpus", "cpu", "memory", "pods"];

export class Past extends Fleet {
  constructor(history) {
    super();
    this.history = history;
    this.stack = history.about.title ?? "";
    this.numbers = new Map();
    this.read = 0;
    // Whether a node came after the beginning or went.
    this.comeAndGo = false;
    this.grow();
  }

  // Nodes that are not there at the moment keep their places, so that nothing jumps while time goes by.
  grow() {
    const { history } = this;
    const ever = new Set();
    for (let n = this.read; n < history.events.length; n += 5) {
      if (history.events[n + 1] !== 0) continue;
      const node = history.events[n + 2];
      const first = !ever.has(node) && !this.numbers.has(history.nodes[node][0]);
      this.comeAndGo ||= history.events[n + 3] < 0 || (first && history.events[n] > history.begin);
      ever.add(node);
    }
    this.read = history.events.length;
    for (const number of ever) {
      const [name, zone, group, product, block, rack] = history.nodes[number];
      if (this.numbers.get(name) === number) continue;
      this.numbers.set(name, number);
      const fixed = [name, zone, group, product, block, rack].join(" ").toLowerCase();
      this.nodes.set(name, { name, zone, group, product, block, rack, number, fixed });
      this.moved = true;
    }
    ever.forEach((number) => history.touched.add(number));
    this.renew();
  }

  seek(at) {
    this.history.seek(at);
    const names = this.renew();
    this.dispatchEvent(new CustomEvent("nodes", { detail: names }));
  }

  renew() {
    const names = new Set();
    for (const number of this.history.touched) {
      const name = this.history.nodes[number][0];
      const node = this.nodes.get(name);
      if (node?.number !== number) continue;
      this.fill(node);
      names.add(name);
    }
    this.history.touched.clear();
    return names;
  }

  fill(node) {
    const { history } = this;
    const condition = history.conditions[history.condition[node.number]];
    const taken = history.taken[node.number];
    node.state = condition ? condition[0] : "gone";
    node.why = condition ? condition[1] : "";
    node.words = `${node.fixed} ${node.state} ${node.why.toLowerCase()}`;
    PARTS.forEach((part, n) => {
      node[part] = condition ? condition[n + 2] : 0;
      node[`${part}Taken`] = taken[n];
    });
    const [part, whole] = node.gpus || node.gpusTaken ? [node.gpusTaken, node.gpus] : [node.cpuTaken, node.cpu];
    node.share = whole ? part / whole : part ? 1 : 0;
  }

  // What the panel and the tip ask a live fleet's server for.
  peek(name) {
    const { history } = this;
    const node = this.nodes.get(name);
    if (!node || node.state === "gone") return null;
    const pods = [...history.podsOn[node.number]].map((number) => {
      const [key, job, asked] = history.pods[number];
      const [namespace, ...rest] = key.split("/");
      const [gpus, cpu, memory] = history.requests[asked];
      const [owner, kind] = history.jobs[job];
      return { namespace, name: rest.join("/"), owner: `${kind}/${owner}`, phase: PHASES[history.status[number]], gpus, cpu, memory };
    });
    const row = [name, node.zone, node.group, node.product, node.block, node.rack, node.state, node.gpus, node.gpusTaken,
      node.cpu, node.cpuTaken, node.memory, node.memoryTaken, node.pods, node.podsTaken, node.why];
    return { row, pool: "", ready: "", cordoned: false, conditions: node.why ? [node.why] : [], taints: [], faults: [], gpusLost: 0, pods };
  }

  headline() {
    const there = [...this.nodes.values()].filter((node) => node.state !== "gone");
    const states = new Map();
    for (const { state } of there) states.set(state, (states.get(state) ?? 0) + 1);
    const sum = (part) => there.reduce((total, node) => total + node[part], 0);
    return {
      nodes: there.length,
      nodesByState: Object.fromEntries(states),
      allocatable: { gpus: sum("gpus"), cpu: sum("cpu") },
      allocated: { gpus: sum("gpusTaken"), cpu: sum("cpuTaken") },
    };
  }
}
