// The same nodes as a table, for who reads rather than looks: sorted by any column, a hundred to a page.

import { compare, counted, element, number, percent } from "./fleet.js";
import { SortedTable } from "./sorted.js";

const PAGE = 100;
const COLUMNS = [
  ["Node", (node) => node.name],
  ["Zone", (node) => node.zone],
  ["Group", (node) => node.group],
  ["Rack", (node) => node.rack],
  ["Product", (node) => node.product],
  ["State", (node) => (node.why ? `${node.state}: ${node.why}` : node.state)],
  ["GPUs", (node) => node.gpusTaken, (node) => (node.gpus || node.gpusTaken ? `${node.gpusTaken} of ${node.gpus}` : "–")],
  ["CPU", (node) => node.cpuTaken / (node.cpu || 1), (node) => percent(node.cpuTaken, node.cpu)],
  ["Memory", (node) => node.memoryTaken / (node.memory || 1), (node) => percent(node.memoryTaken, node.memory)],
  ["Pods", (node) => node.podsTaken, (node) => String(node.podsTaken)],
];

export class NodeTable extends SortedTable {
  constructor(fleet, { place, open, announce }) {
    super(COLUMNS, PAGE);
    Object.assign(this, { fleet, place, open, announce });
    this.matches = () => true;
    this.before = this.button("Previous page", () => this.turn(-1));
    this.after = this.button("Next page", () => this.turn(1));
    place.append(
      element("table", {}, this.caption, element("thead", {}, this.head), this.body),
      element("nav", { "aria-label": "Pages of the table" }, this.before, this.where, this.after),
    );
    this.heads();
  }

  draw() {
    if (this.place.hidden) return;
    const [, value] = COLUMNS[this.column];
    const sign = this.down ? -1 : 1;
    const order = (a, b) => (typeof a === "number" ? a - b : compare(a, b));
    const nodes = [...this.fleet.nodes.values()].filter(this.matches)
      .sort((a, b) => sign * order(value(a), value(b)) || compare(a.name, b.name));
    const [shown] = this.paged(nodes);
    const first = this.page * PAGE;
    this.caption.textContent = counted(nodes.length, "node");
    this.where.textContent = nodes.length
      ? `${number(first + 1)} to ${number(first + shown.length)} of ${number(nodes.length)}` : "none";
    const focused = this.body.contains(document.activeElement) ? document.activeElement.textContent : "";
    this.body.replaceChildren(...shown.map((node) => this.row(node)));
    if (focused) [...this.body.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  }

  row(node) {
    const cells = COLUMNS.slice(1).map(([, value, text]) =>
      element("td", { className: text ? "number" : "", textContent: (text ?? value)(node) || "–" }));
    const open = this.button(node.name, () => this.open(node.name));
    return element("tr", {}, element("th", { scope: "row" }, open), ...cells);
  }
}
