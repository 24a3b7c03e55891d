// A table that is sorted by the column whose head is pressed, and shown a page at a time.

import { element } from "./fleet.js";

export class SortedTable {
  // columns: name and value of each; size: rows of a page. Whoever extends it draws, and announces.
  constructor(columns, size, column = 0) {
    Object.assign(this, { columns, size, column });
    this.down = false;
    this.page = 0;
    this.head = element("tr");
    this.body = element("tbody");
    this.caption = element("caption");
    this.where = element("span");
  }

  button(text, onclick) {
    return element("button", { type: "button", textContent: text, onclick });
  }

  heads() {
    this.head.replaceChildren(...this.columns.map(([name], index) => {
      const sorted = index === this.column;
      return element("th", { scope: "col", "aria-sort": sorted ? (this.down ? "descending" : "ascending") : "none" },
        this.button(name, () => this.sort(index)),
        element("span", { "aria-hidden": "true", textContent: sorted ? (this.down ? " ▼" : " ▲") : "" }));
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

  // The rows of the page that is shown, of all of them, and how many pages there are.
  paged(rows) {
    const pages = Math.max(1, Math.ceil(rows.length / this.size));
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page === pages - 1;
    this.where.parentElement.hidden = pages === 1;
    return [rows.slice(this.page * this.size, (this.page + 1) * this.size), pages];
  }
}
