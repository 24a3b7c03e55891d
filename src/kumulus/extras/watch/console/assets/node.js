// One node in full: what it has, how it is, and its pods.

import { bytes, counted, element, number, percent } from "./fleet.js";

export class NodePanel {
  // peek: gives a node with its pods, or null; closed: told when the panel is.
  constructor(panel, peek = fetchNode) {
    this.panel = panel;
    this.peek = peek;
    this.closed = () => {};
    this.name = "";
    this.opener = null;
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  async open(name) {
    if (!this.panel.contains(document.activeElement)) this.opener = document.activeElement;
    this.name = name;
    await this.refresh();
    if (this.name) this.panel.focus();
  }

  close() {
    this.name = "";
    this.panel.hidden = true;
    this.closed();
    this.opener?.focus();
  }

  async refresh() {
    const name = this.name;
    if (!name) return;
    const found = await this.peek(name);
    if (this.name !== name) return;
    const had = this.panel.contains(document.activeElement) && document.activeElement !== this.panel;
    const close = element("button", { type: "button", className: "close", textContent: "Close", onclick: () => this.close() });
    const head = element("h2", { id: `${this.panel.id || "panel"}-name`, textContent: name });
    const body = found ? content(found) : [element("p", { textContent: "This node is gone." })];
    this.panel.replaceChildren(close, head, ...body);
    this.panel.hidden = false;
    if (had) close.focus();
  }
}

export async function fetchNode(name) {
  try {
    const answer = await fetch(`nodes/${encodeURIComponent(name)}`);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

function content(found) {
  const [, zone, group, product, block, rack, state, gpus, gpusTaken, cpu, cpuTaken, memory, memoryTaken, slots, taken] = found.row;
  const facts = [
    ["State", state],
    ["Ready", found.ready],
    ["Conditions", found.conditions.join(", ")],
    ["Faults", found.faults.join(", ")],
    ["GPUs lost", found.gpusLost > 0 ? String(found.gpusLost) : ""],
    ["Taints", found.taints.join(", ")],
    ["Zone", zone],
    ["Group", group],
    ["Pool", found.pool],
    ["Block", block],
    ["Rack", rack],
    ["Product", product],
    ["GPUs", gpus || gpusTaken ? `${gpusTaken} of ${gpus} allocated` : ""],
    ["CPU", `${number(cpuTaken / 1000)} of ${number(cpu / 1000)} cores (${percent(cpuTaken, cpu)})`],
    ["Memory", `${bytes(memoryTaken)} of ${bytes(memory)} (${percent(memoryTaken, memory)})`],
    ["Pods", `${taken} of ${slots}`],
  ].filter(([, value]) => value);
  const list = element("dl", {}, ...facts.flatMap(([term, value]) => [
    element("dt", { textContent: term }), element("dd", { textContent: value })]));
  return [list, podTable(found.pods)];
}

function podTable(pods) {
  const cell = (text) => element("td", { textContent: text });
  const rows = pods.map((pod) => element("tr", {},
    element("th", { scope: "row", textContent: `${pod.namespace}/${pod.name}` }),
    cell(pod.phase), cell(pod.gpus ? String(pod.gpus) : "–"), cell(pod.owner || "–")));
  const heads = ["Pod", "Phase", "GPUs", "Owner"].map((text) => element("th", { scope: "col", textContent: text }));
  return element("table", {},
    element("caption", { textContent: pods.length ? `${counted(pods.length, "pod")} bound to it` : "No pods bound to it" }),
    ...(pods.length ? [element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)] : []));
}
