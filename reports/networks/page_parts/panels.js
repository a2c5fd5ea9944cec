// The side panel: legend, patterns, single requests, notes and tables.
const MAX_ROWS = 50, MAX_PATTERNS = 200;

function drawLegend(into, model, isDark) {
  const parts = [];
  model.about.hops.forEach((_, hop) => {
    const histogram = model.hopHistogram(hop), name = metricName(model.about, model.metric, hop);
    parts.push(element("h3", { text: `${model.hopText(hop)}: ${name}` }));
    if (!histogram.some((count) => count > 0)) {
      parts.push(element("p", { text: `no ${name} is known${model.isWhole ? "" : " in the selected time"}` }));
      return;
    }
    parts.push(bars(model, histogram, hop, isDark, 70), ramp(model, hop, isDark));
  });
  const unused = element("span", { class: "swatch" });
  unused.style.background = `rgb(${model.about.unused[isDark ? "dark" : "light"].join(",")})`;
  parts.push(element("p", {}, unused, "no transfer with such a value"));
  const special = [model.now.said.hasNegative && "values below zero", model.now.said.hasZero && "zero"].filter(Boolean);
  const axis = `On each edge, the lowest values are at the inner end, the highest at the outer end${special.length ? `; innermost ${special.join(", then ")}` : ""}. All hops share the axis.`;
  parts.push(element("p", { text: axis }));
  if (model.isRounded) parts.push(element("p", { text: "Counts of this time range are rounded: see the notes." }));
  into.replaceChildren(...parts);
}

function ramp(model, hop, isDark) {
  const canvas = element("canvas", { class: "ramp", width: 256, height: 1, "aria-hidden": "true" });
  const colors = hopColors(model.about, hop, isDark), image = new ImageData(256, 1);
  for (let i = 0; i < 256; i++) image.data.set([colors[3 * i], colors[3 * i + 1], colors[3 * i + 2], 255], 4 * i);
  canvas.getContext("2d").putImageData(image, 0, 0);
  const most = model.most[hop], middle = Math.round(Math.sqrt(most));
  const texts = most > 1 ? ["1", ...(middle > 1 && middle < most ? [countText(middle)] : []), plural(most, "transfer")] : ["1 transfer"];
  return element("div", {}, canvas, element("div", { class: "ends" }, ...texts.map((text) => element("span", { text }))));
}

const PATTERN_TEXTS = {
  circular: "circular: similar values at all nodes",
  striped: "striped: bands of neighboring nodes differ",
  noisy: "noisy: values are scattered",
  outlier: "outlier: few nodes have far higher values",
};
const NO_PATTERN_TEXTS = {
  too_few_nodes: "no pattern: too few nodes are active",
  too_few_transfers: "no pattern: too few transfers have a known value",
  no_match: "no pattern fits",
};

// Patterns of the metric: first those of the whole run, then those of time windows, with equal neighbors merged.
function shownPatterns(model) {
  const rows = model.about.patterns.filter((row) => row.metric === model.metric);
  const wholes = rows.filter((row) => row.isWhole), parts = [];
  for (const row of rows.filter((one) => !one.isWhole && one.pattern)) {
    const last = parts[parts.length - 1];
    const isNext = last && last.hop === row.hop && last.pattern === row.pattern && Math.abs(last.ceasedS - row.beganS) < 1e-9 * Math.max(1, row.beganS) + 1e-12;
    if (isNext && String(last.causes) === String(row.causes)) last.ceasedS = row.ceasedS;
    else parts.push({ ...row });
  }
  return [...wholes, ...parts];
}

function patternEntry(row, app) {
  const { model } = app, hop = model.hopText(row.hop);
  const time = row.isWhole ? "whole run" : `${timeText(row.beganS)} to ${timeText(row.ceasedS)}`;
  const causes = row.causes.map((label) => [row.hop, model.about.layers[row.hop].labels.indexOf(label)]).filter(([, node]) => node >= 0);
  const more = [];
  if (row.pattern === "striped" && row.nodesPerBand !== null) more.push(`a period of ${digits(row.nodesPerBand)} nodes`);
  if (row.nodeSpread !== null) more.push(`values of different nodes differ by a factor of ${digits(2 ** row.nodeSpread)}`);
  if (row.edgeSpread !== null) more.push(`values of one node by ${digits(2 ** row.edgeSpread)}`);
  if (causes.length) more.push(`caused by ${causes.slice(0, 4).map((one) => model.nodeText(...one)).join(", ")}${causes.length > 4 ? ` and ${causes.length - 4} more` : ""}`);
  const title = row.pattern ? PATTERN_TEXTS[row.pattern] : NO_PATTERN_TEXTS[row.outcome] || row.outcome;
  const texts = [element("span", { text: `${hop}, ${title}` }), element("small", { text: [time, ...more].join("; ") })];
  if (!row.pattern || (!causes.length && row.isWhole)) return element("p", { class: "entry" }, ...texts);
  const key = `pattern ${row.hop} ${row.metric} ${row.beganS} ${row.isWhole}`;
  return element("button", { type: "button", class: "entry", "data-entry": key, "aria-pressed": "false", onclick: () => {
    if (!row.isWhole) app.select(...model.windowsOf(row.beganS, row.ceasedS));
    if (causes.length) app.isolate(app.isEntry(key) ? null : { nodes: causes, entry: key, title: `${row.pattern}: ${plural(causes.length, "node")}` });
  } }, ...texts);
}

function drawPatterns(part, into, app) {
  const rows = shownPatterns(app.model);
  part.hidden = !rows.length;
  const wholes = rows.filter((row) => row.isWhole), parts = rows.filter((row) => !row.isWhole);
  into.replaceChildren(...wholes.map((row) => patternEntry(row, app)));
  if (!parts.length) return;
  const more = element("details", {}, element("summary", { text: `In single time windows: ${countText(parts.length)}` }));
  more.append(...parts.slice(0, MAX_PATTERNS).map((row) => patternEntry(row, app)));
  if (parts.length > MAX_PATTERNS) more.append(element("p", { text: `${parts.length - MAX_PATTERNS} more not shown.` }));
  into.append(more);
}

function drawBottlenecks(part, into, app) {
  const { model } = app, rows = model.about.bottlenecks;
  part.hidden = !rows.length;
  const node = (layerName, label) => {
    const layer = model.about.layers.findIndex((one) => one.name === layerName);
    return layer < 0 ? null : [layer, model.about.layers[layer].labels.indexOf(label)];
  };
  into.replaceChildren(...rows.map((row, place) => {
    const name = model.about.metrics[row.metric].name;
    const nodes = [node(row.sourceLayer, row.source), node(row.targetLayer, row.target)].filter((one) => one && one[1] >= 0);
    const share = row.share === null ? "" : `, ${(100 * row.share).toPrecision(2)} % of all`;
    const text = `${valueText(name, row.value)}: ${row.sourceLayer} ${row.source} → ${row.targetLayer} ${row.target}`;
    const more = `at ${row.beganS === null ? "an unknown time" : timeText(row.beganS)}; median ${valueText(name, row.median)}${share}`;
    const key = `request ${place}`;
    return element("li", {}, element("button", { type: "button", class: "entry", "data-entry": key, "aria-pressed": "false", onclick: async () => {
      if (app.isEntry(key)) { app.isolate(null); return; }
      const edge = nodes.length === 2 ? model.outEdges(...nodes[0]).find((one) => model.targets[one] === nodes[1][1] && nodes[1][0] === nodes[0][0] + 1) : undefined;
      if (row.metric !== model.metric) await app.choose(row.metric);
      if (edge !== undefined) app.isolate({ edges: [edge], entry: key }); else if (nodes.length) app.isolate({ nodes: nodes.slice(0, 1), entry: key });
    } }, element("span", { text }), element("small", { text: more })));
  }));
}

function drawNotes(part, into, about) {
  const texts = [...about.notes, ...about.coarser];
  part.hidden = !texts.length;
  into.replaceChildren(...texts.map((text) => element("li", { text })));
}

// ---- tables

function drawTables(into, app, order) {
  const { model } = app;
  into.replaceChildren(...model.about.hops.map((_, hop) => edgeTable(app, hop, order)), ...model.about.layers.map((_, layer) => nodeTable(app, layer, order)));
}

function row(model, edges, hop) {
  const histogram = model.histogram(edges), sums = model.total(edges);
  const highest = model.now.name === "time" ? sums.longest : model.highest(histogram);
  return { ...sums, bytes: sums.read + sums.written, median: model.median(histogram), highest, hop };
}

function best(rows, order) {
  const value = (one) => (Number.isNaN(one[order]) ? -Infinity : one[order]);
  return rows.filter((one) => one.transfers > 0).sort((one, other) => value(other) - value(one) || other.transfers - one.transfers).slice(0, MAX_ROWS);
}

function edgeTable(app, hop, order) {
  const { model } = app, rows = [];
  for (let edge = model.firsts[hop]; edge < model.firsts[hop + 1]; edge++) rows.push({ ...row(model, [edge], hop), edge });
  return table(app, `Edges ${model.hopText(hop)}`, "edge", best(rows, order), rows.length,
    (one) => model.edgeText(one.edge), (one) => ({ edges: [one.edge] }));
}

function nodeTable(app, layer, order) {
  const { model } = app, hop = Math.min(layer, model.about.hops.length - 1), name = model.about.layers[layer].name;
  const rows = model.rings[layer].order.map((node) => {
    const edges = layer === hop ? model.outEdges(layer, node) : model.inEdgesOf(layer, node);
    return { ...row(model, edges, hop), node };
  });
  return table(app, `Nodes: ${name}`, name, best(rows, order), rows.length,
    (one) => model.nodeText(layer, one.node), (one) => ({ nodes: [[layer, one.node]] }));
}

function table(app, title, first, rows, count, text, isolated) {
  const { model } = app, name = model.now.name;
  const head = [first, "transfers", "read", "written", "median", name === "time" ? "longest" : "highest"];
  const made = element("table", {}, element("caption", { text: rows.length < count ? `${title}: ${rows.length} of ${countText(count)}` : title }),
    element("thead", {}, element("tr", {}, ...head.map((one) => element("th", { scope: "col", text: one })))));
  const body = element("tbody");
  for (const one of rows) {
    const cells = [countText(one.transfers), sizeText(one.read), sizeText(one.written), markedValue(model, one.median), markedValue(model, one.highest)];
    body.append(element("tr", {}, element("td", {}, element("button", { type: "button", text: text(one), onclick: () => app.isolate(isolated(one)) })),
      ...cells.map((cell) => element("td", { text: cell }))));
  }
  made.append(body);
  return made;
}
