// Elements with the numbers of nodes and edges; text from logs is only inserted as text, never as HTML.
function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "text") made.textContent = value;
    else if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Draws a histogram as bars of log-scaled height, lowest value at the left, with its axis.
function bars(model, histogram, hop, isDark, height = 64) {
  const metric = model.now, width = 260, foot = 17, high = height - foot - 2;
  const most = Math.max(0, ...histogram), wide = width / Math.max(1, histogram.length);
  const picture = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "bars", role: "img", "aria-label": histogramText(model, histogram) });
  const colors = hopColors(model.about, hop, isDark);
  histogram.forEach((count, slot) => {
    if (!(count > 0)) return;
    const part = most > 1 ? Math.log1p(count) / Math.log1p(most) : 1;
    const at = 3 * Math.round(255 * (most > 1 ? Math.max(0, Math.log(count)) / Math.log(most) : 0));
    picture.append(drawn("rect", { x: slot * wide + 0.3, y: high * (1 - part) + 1, width: Math.max(0.6, wide - 0.6), height: Math.max(1, high * part),
      fill: `rgb(${colors[at]},${colors[at + 1]},${colors[at + 2]})` }));
  });
  picture.append(drawn("path", { class: "axis", d: `M0 ${high + 1.5}H${width}` }));
  let last = -Infinity;
  for (const { place, text } of axisTicks(metric, 5)) {
    const x = place * width, half = text.length * 3;
    picture.append(drawn("path", { class: "axis", d: `M${x} ${high + 1.5}v3` }));
    if (x - half < last + 4) continue;
    const middle = Math.max(half, Math.min(width - half, x));
    last = middle + half;
    picture.append(drawn("text", { x: middle, y: height - 3, "text-anchor": "middle" }, text));
  }
  return picture;
}

function histogramText(model, histogram) {
  const total = histogram.reduce((sum, one) => sum + one, 0);
  if (!total) return "Histogram without values";
  return `Histogram of ${countText(total)} values: median ${markedValue(model, model.median(histogram))}, highest below ${markedValue(model, model.highest(histogram))}`;
}

function markedValue(model, value) { return value === -Infinity ? "below zero" : valueText(model.now.name, value); }

// Returns facts about edges of one hop, as pairs of a name and a text.
function facts(model, edges, hop) {
  const sums = model.total(edges), histogram = model.histogram(edges), about = model.areTotalsRounded ? "≈ " : "";
  const name = metricName(model.about, model.metric, hop), known = histogram.reduce((sum, one) => sum + one, 0);
  const found = [["transfers", about + countText(sums.transfers)], ["read", about + sizeText(sums.read)], ["written", about + sizeText(sums.written)]];
  if (known) {
    // the median is interpolated within a slot, so it may exceed the longest time
    const median = model.median(histogram), most = model.now.name === "time" && sums.longest > 0 ? sums.longest : Infinity;
    found.push([`median ${name}`, `≈ ${markedValue(model, Math.min(median, most))}`]);
    if (model.now.name === "time") found.push([`longest ${name}`, about + timeText(sums.longest)]);
    else found.push([`highest ${name}`, `< ${markedValue(model, model.highest(histogram))}`]);
    const lowest = model.now.special ? histogram.slice(0, model.now.special) : [];
    lowest.forEach((count, slot) => {
      if (count > 0) found.push([slot === 0 && model.now.said.hasNegative ? "below zero" : "zero", countText(count)]);
    });
    if (Math.round(known) < Math.round(sums.transfers) && !about && !model.isRounded) found.push([`${name} not known`, countText(sums.transfers - known)]);
  } else found.push([name, "not known"]);
  return { found, histogram };
}

function factList(pairs) {
  const list = element("dl");
  for (const [name, text] of pairs) list.append(element("dt", { text: name }), element("dd", { text }));
  return list;
}

function group(model, title, edges, hop, isDark) {
  const { found, histogram } = facts(model, edges, hop);
  return [element("h4", { text: title }), factList(found), bars(model, histogram, hop, isDark)];
}

function edgeFacts(model, edge, isDark) {
  const hop = model.hops[edge], { found, histogram } = facts(model, [edge], hop);
  return element("div", { class: "facts" }, element("h3", { text: model.edgeText(edge) }), factList(found), bars(model, histogram, hop, isDark));
}

// Compares a node with the median of its layer, if the node is one of the slowest.
function slowText(model, layer, node) {
  const found = model.about.slow.find((one) => one.layer === layer), place = found ? found.nodes.indexOf(node) : -1;
  if (place < 0) return "";
  const many = countText(found.count), which = place ? `place ${place + 1} of ${many} by slowness` : `slowest of ${many}`;
  return `\u00d7 ${found.ratios[place].toFixed(2)} the median of its layer, ${which}`;
}

function nodeFacts(model, layer, node, isDark) {
  const made = element("div", { class: "facts" }, element("h3", { text: model.nodeText(layer, node) }));
  const one = model.about.layers[layer];
  if (one.groupSize > 1) made.append(element("p", { text: `up to ${countText(one.groupSize)} of ${countText(one.memberCount)} taken together` }));
  const slow = slowText(model, layer, node);
  if (slow) made.append(element("p", { text: slow }));
  const ins = model.inEdgesOf(layer, node), outs = model.outEdges(layer, node);
  if (ins.length) made.append(...group(model, `with ${plural(ins.length, model.about.layers[layer - 1].name)}`, ins, layer - 1, isDark));
  if (outs.length) made.append(...group(model, `with ${plural(outs.length, model.about.layers[layer + 1].name)}`, outs, layer, isDark));
  if (!ins.length && !outs.length) made.append(element("p", { text: "no transfers" }));
  return made;
}

function isolatedFacts(model, isDark) {
  const { nodes = [], edges = [], all, title } = model.isolated;
  if (nodes.length === 1 && !edges.length) return nodeFacts(model, ...nodes[0], isDark);
  if (edges.length === 1 && !nodes.length) return edgeFacts(model, edges[0], isDark);
  const made = element("div", { class: "facts" }, element("h3", { text: title || plural(nodes.length, "node") }));
  if (nodes.length) made.append(element("p", { text: nodes.slice(0, 20).map(([layer, node]) => model.nodeText(layer, node)).join(", ") }));
  model.about.hops.forEach((_, hop) => {
    const mine = all.filter((edge) => model.hops[edge] === hop);
    if (mine.length) made.append(...group(model, `${model.hopText(hop)}, ${plural(mine.length, "edge")}`, mine, hop, isDark));
  });
  return made;
}

// Describes a node in one sentence, for screen readers.
function nodeSentence(model, layer, node) {
  const text = (edges, hop) => facts(model, edges, hop).found.map(([name, value]) => `${name} ${value}`).join(", ");
  const ins = model.inEdgesOf(layer, node), outs = model.outEdges(layer, node), parts = [];
  if (ins.length) parts.push(`with ${plural(ins.length, model.about.layers[layer - 1].name)}: ${text(ins, layer - 1)}`);
  if (outs.length) parts.push(`with ${plural(outs.length, model.about.layers[layer + 1].name)}: ${text(outs, layer)}`);
  return `${model.nodeText(layer, node)}; ${parts.join("; ") || "no transfers"}`;
}
