// The fleet as this page knows it: kept by server-sent events, told to whoever listens.

export const STATES = ["ready", "cordoned", "faulted", "not ready"];

export class Fleet extends EventTarget {
  constructor() {
    super();
    this.nodes = new Map();
    this.stack = "";
    this.remedy = "";
    this.summary = null;
    this.lost = null;
    // Whether nodes came or went since somebody looked, so that the map has to be laid out again.
    this.moved = false;
    this.columns = {};
  }

  listen() {
    const source = new EventSource("events");
    source.addEventListener("fleet", (event) => this.begin(JSON.parse(event.data)));
    source.addEventListener("changes", (event) => this.change(JSON.parse(event.data)));
    source.addEventListener("past", (event) => this.dispatchEvent(new CustomEvent("past", { detail: JSON.parse(event.data) })));
    source.addEventListener("state", (event) => this.take(JSON.parse(event.data)));
    source.onerror = () => {
      this.lost = { why: "This page's server does not answer. Run `kumulus ui` again: its new address holds a new token." };
      this.dispatchEvent(new Event("state"));
    };
  }

  begin(told) {
    this.stack = told.stack;
    this.remedy = told.remedy;
    this.changes = told.changes;
    told.columns.forEach((name, index) => (this.columns[name] = index));
    this.nodes = new Map(told.nodes.map((row) => [row[0], this.read(row)]));
    this.moved = true;
    this.take(told);
    this.dispatchEvent(new CustomEvent("nodes", { detail: null }));
  }

  change({ changed, gone }) {
    const names = [];
    for (const name of gone) {
      this.moved = this.nodes.delete(name) || this.moved;
    }
    for (const row of changed) {
      const node = this.read(row);
      const old = this.nodes.get(node.name);
      this.moved = this.moved || !old || places(old) !== places(node);
      this.nodes.set(node.name, node);
      names.push(node.name);
    }
    this.dispatchEvent(new CustomEvent("nodes", { detail: new Set([...names, ...gone]) }));
  }

  take({ summary, lost }) {
    this.summary = summary;
    this.lost = lost;
    this.dispatchEvent(new Event("state"));
  }

  read(row) {
    const node = {};
    for (const [name, index] of Object.entries(this.columns)) node[name] = row[index];
    // What its fullness is measured by: GPUs, or CPU where there are none.
    const [part, whole] = node.gpus || node.gpusTaken ? [node.gpusTaken, node.gpus] : [node.cpuTaken, node.cpu];
    node.share = whole ? part / whole : part ? 1 : 0;
    node.words = [node.name, node.zone, node.group, node.product, node.block, node.rack, node.state, node.why]
      .join(" ").toLowerCase();
    return node;
  }
}

function places(node) {
  return `${node.zone}/${node.group}/${node.block}/${node.rack}`;
}

export const compare = new Intl.Collator("en", { numeric: true }).compare;

export function percent(part, whole) {
  if (!whole) return "–";
  const found = Math.round((100 * part) / whole);
  if (part && !found) return "<1 %";
  return found === 100 && part < whole ? ">99 %" : `${found} %`;
}

export function number(value) {
  return value.toLocaleString("en");
}

export function counted(value, what) {
  return `${number(value)} ${what}${value === 1 ? "" : "s"}`;
}

// Names can be as long as somebody likes; whoever wants all of one reads the title.
export function short(text) {
  const found = String(text);
  return found.length > 120 ? `${found.slice(0, 119)}…` : found;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${value.toLocaleString("en", { maximumFractionDigits: value < 100 && unit ? 1 : 0 })} ${units[unit]}`;
}

export function said(node) {
  const gpus = node.gpus || node.gpusTaken ? `${node.gpusTaken} of ${counted(node.gpus, "GPU")}` : `${percent(node.cpuTaken, node.cpu)} of CPU`;
  const state = node.why ? `${node.state} (${node.why})` : node.state;
  return `${node.name}: ${state}, ${gpus} allocated, ${counted(node.podsTaken, "pod")}`;
}

// Elements without markup in strings: what a cluster's names hold is text, whatever they hold.
export function element(tag, properties = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") || name === "role" || name === "scope") found.setAttribute(name, value);
    else found[name] = value;
  }
  found.append(...children);
  return found;
}

// A legend's marks, each with its words, from which no end of a line parts it.
export function legend(marks) {
  return marks.flatMap(([name, words]) => [element("span", {}, element("i", { className: name }), words), " "]);
}
