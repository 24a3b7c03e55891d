// The same nodes as a table, for who reads rather than looks: sorted by any column, a hundred to a page.

import { compare, counted, element, number, percent } from "./fleet.js";

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

export class NodeTable {
  constructor(fleet, { place, open, announce }) {
    Object.assign(this, { fleet, place, open, announce });
    this.matches = () => true;
    this.column = 0;
    this.down = false;
    this.page = 0;
    this.head = element("tr");
    this.body = element("tbody");
    this.caption = element("caption");
    this.before = this.button("Previous page", () => this.turn(-1));
    this.after = this.button("Next page", () => this.turn(1));
    this.where = element("span");
    place.append(
      element("table", {}, this.caption, element("thead", {}, this.head), this.body),
      element("nav", { "aria-label": "Pages of the table" }, this.before, this.where, this.after),
    );
    this.heads();
  }

  button(text, onclick) {
    return element("button", { type: "button", textContent: text, onclick });
  }

  heads() {
    this.head.replaceChildren(...COLUMNS.map(([name], index) => {
      const sorted = index === this.column;
      const cell = element("th", { scope: "col", "aria-sort": sorted ? (this.down ? "descending" : "ascending") : "none" });
      const button = this.button(name, () => this.sort(index));
      cell.append(button, element("span", { "aria-hidden": "true", textContent: sorted ? (this.down ? " ▼" : " ▲") : "" }));
      return cell;
    }));
  }

  sort(column) {
    this.down = column === this.column && !this.down;
    this.column = column;
    this.page = 0;
    this.heads();
    this.draw();
    this.head.children[column].querySelector("button").focus();
  }

  turn(by) {
    this.page += by;
    this.draw();
    this.announce(this.where.textContent);
  }

  draw() {
    if (this.place.hidden) return;
    const [, value] = COLUMNS[this.column];
    const sign = this.down ? -1 : 1;
    const order = (a, b) => (typeof a === "number" ? a - b : compare(a, b));
    const nodes = [...this.fleet.nodes.values()].filter(this.matches)
      .sort((a, b) => sign * order(value(a), value(b)) || compare(a.name, b.name));
    const pages = Math.max(1, Math.ceil(nodes.length / PAGE));
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    const first = this.page * PAGE;
    const shown = nodes.slice(first, first + PAGE);
    this.caption.textContent = counted(nodes.length, "node");
    this.where.textContent = nodes.length
      ? `${number(first + 1)} to ${number(first + shown.length)} of ${number(nodes.length)}` : "none";
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page === pages - 1;
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
