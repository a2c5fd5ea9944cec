// The lineage page: the graph of steps as SVG, and below it the tables with their sources.
const SVG = "http://www.w3.org/2000/svg";
const NODE = { width: 132, height: 26, across: 146, down: 58 };

function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

drawers.lineage = async () => {
  const told = await loaded("lineage");
  if (!told.tables.length) { nothing(drawnIn("steps"), "The report has no lineage."); return; }
  const readers = new Map();
  for (const table of told.tables) for (const source of table.sources) readers.set(source, [...(readers.get(source) ?? []), table.name]);
  const known = new Set(told.tables.map((table) => table.name));
  const sought = make("input", { type: "search", autocomplete: "off", oninput: () => show() });
  const list = make("div");
  drawnIn("lineage").append(make("p", {}, make("label", {}, "Show tables with ", sought)), list);
  const graph = drawSteps(drawnIn("steps"), told);

  // The fragment of the address, which selects a table or a step.
  const wanted = () => new URLSearchParams(location.hash.slice(1));
  function show() {
    const text = sought.value.toLowerCase(), step = wanted().get("step"), name = wanted().get("table");
    const rows = told.tables.filter((table) => (name ? table.name === name : !step || table.step === step) && `${table.name} ${table.step}`.toLowerCase().includes(text));
    list.replaceChildren(...rows.map((table) => tableOf(table, readers.get(table.name) ?? [], known, rows.length === 1)));
    if (!rows.length) nothing(list, "No step computes such a table.");
    if (name || step) list.prepend(make("p", {}, make("a", { href: "#" }, "Show all tables")));
  }
  const follow = () => {
    const owner = told.tables.find((table) => table.name === wanted().get("table"))?.step;
    graph.choose(wanted().get("step") ?? owner);
    show();
  };
  addEventListener("hashchange", follow);
  follow();
};

function tableOf(table, readers, known, isOpen) {
  const links = (names) => names.flatMap((name, place) => [place ? ", " : "", known.has(name) ? make("a", { href: `#table=${encodeURIComponent(name)}` }, name) : name]);
  const [, own] = table.name.split(".");
  const title = make("summary", {}, make("code", {}, table.name), " ", make("span", {}, `${table.step}, by ${table.is_sql ? "SQL" : "Python"}`), table.is_published ? "" : make("small", {}, " intermediate"));
  const parts = [
    make("p", {}, "Computed from ", ...(table.sources.length ? links(table.sources) : ["no other table"]), "."),
    readers.length ? make("p", {}, "Used by ", ...links(readers), ".") : null,
    table.is_published ? make("p", {}, make("a", { href: `tables.html#table-${encodeURIComponent(own)}` }, `Rows and columns of ${own}`)) : null,
    table.columns.length ? plainTable(["column", "computed from"], table.columns.map(([column, sources]) => [make("code", {}, column), sources.join(", ")])) : null,
  ];
  return make("details", { open: isOpen }, title, ...parts);
}

// Draws the steps in levels, from top to bottom, and highlights the chosen step with its upstream and downstream steps.
function drawSteps(into, told) {
  const widest = Math.max(...told.order.map((level) => level.length)), width = widest * NODE.across, height = told.order.length * NODE.down;
  const place = new Map();
  told.order.forEach((level, number) => level.forEach((step, nth) => place.set(step, {
    x: width * ((nth + 0.5) / level.length), y: number * NODE.down + NODE.down / 2 })));
  const arrows = told.arrows.map(([first, then]) => {
    const from = place.get(first), to = place.get(then), begin = from.y + NODE.height / 2, end = to.y - NODE.height / 2 - 5, half = NODE.down * 0.55;
    return makeSvg("path", { d: `M${from.x} ${begin}C${from.x} ${begin + half} ${to.x} ${end - half} ${to.x} ${end}`, "marker-end": "url(#arrow)" });
  });
  const nodes = told.steps.map(({ name }, step) => {
    const { x, y } = place.get(step);
    const box = makeSvg("rect", { x: x - NODE.width / 2, y: y - NODE.height / 2, width: NODE.width, height: NODE.height, rx: 6 });
    return makeSvg("a", { href: `#step=${encodeURIComponent(name)}` }, box, makeSvg("text", { x, y: y + 4 }, name));
  });
  const head = makeSvg("marker", { id: "arrow", viewBox: "0 0 6 6", refX: 1, refY: 3, markerWidth: 6, markerHeight: 6, orient: "auto" }, makeSvg("path", { d: "M0 0L6 3L0 6z" }));
  const picture = makeSvg("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Steps and their dependencies" }, makeSvg("defs", {}, head), ...arrows, ...nodes);
  picture.style.minWidth = `${Math.min(width, 900)}px`;
  into.append(make("div", { class: "scroll" }, picture));

  const reached = (begin, from, to) => {
    const found = new Set([begin]);
    for (const step of found) for (const arrow of told.arrows) if (arrow[from] === step) found.add(arrow[to]);
    return found;
  };
  return {
    choose(name) {
      const chosen = told.steps.findIndex((step) => step.name === name);
      picture.classList.toggle("chosen", chosen >= 0);
      const [upstream, downstream] = chosen < 0 ? [new Set(), new Set()] : [reached(chosen, 1, 0), reached(chosen, 0, 1)];
      nodes.forEach((node, step) => {
        node.classList.toggle("is-chosen", step === chosen);
        node.classList.toggle("is-near", upstream.has(step) || downstream.has(step));
      });
      arrows.forEach((arrow, number) => {
        const [first, then] = told.arrows[number];
        arrow.classList.toggle("is-near", (upstream.has(first) && upstream.has(then)) || (downstream.has(first) && downstream.has(then)));
      });
    },
  };
}
