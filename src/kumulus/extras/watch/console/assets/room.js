// Where more pods of a job could go, and what would have to be free where they cannot.

// asks: of GPUs, thousandths of a core, bytes and pods, for one of them; waiting: how many pods; of: nodes there are;
// may: those that may take one; fit: for how many more there is room, by node; free: what would have to be free for one
// more, by node, of the nodes where that is least; apart: what is not looked at;
// known: whether selectors and taints are recorded. Null when no pod waits.
export function room(history, job) {
  const waiting = history.podsOf[job].filter((pod) => history.status[pod] === 1);
  if (!waiting.length) return null;
  const request = history.requests[history.pods[waiting[0]][2]];
  const asks = [...request.slice(0, 3), 1];
  const [ways, apart] = history.rules[request[3]] ?? [null, []];
  const found = { asks, waiting: waiting.length, of: 0, may: [], fit: new Map(), free: new Map(), apart, known: Boolean(ways) };
  const lacking = [];
  for (let node = 0; node < history.nodes.length; node++) {
    const condition = history.conditions[history.condition[node]];
    if (!condition) continue;
    found.of++;
    if (condition[0] === "not ready" || !admitted(history, ways, node)) continue;
    const has = condition.slice(2);
    const free = has.map((amount, part) => amount - history.taken[node][part]);
    const more = Math.max(0, Math.min(...asks.flatMap((amount, part) => (amount ? [Math.floor(free[part] / amount)] : []))));
    const next = asks.map((amount) => amount * (more + 1));
    if (asks.every((amount, part) => amount <= has[part])) found.may.push(node);
    if (more) found.fit.set(node, more);
    if (next.every((amount, part) => amount <= has[part])) lacking.push([node, next.map((amount, part) => Math.max(0, amount - free[part]))]);
  }
  const places = [...found.fit.values()].reduce((sum, each) => sum + each, 0);
  lacking.sort(([a, x], [b, y]) => x[0] - y[0] || x[1] - y[1] || x[2] - y[2] || x[3] - y[3] || a - b);
  for (const [node, lacks] of lacking.slice(0, Math.max(0, waiting.length - places))) found.free.set(node, lacks);
  return found;
}

function admitted(history, ways, node) {
  if (!ways) return true;
  const name = history.nodes[node][0];
  return ways.some(([shape, only, never]) =>
    history.fits.get(shape)?.has(history.nature[node]) && (!only || only.includes(name)) && !never.includes(name));
}
