// The page: handles events, and redraws the affected elements.
const byId = (id) => document.getElementById(id);

function complain(text) {
  byId("message").textContent = text;
  byId("message").hidden = false;
}

class App {
  constructor(model) {
    this.model = model;
    this.camera = new Camera();
    this.stage = byId("stage");
    this.picture = new Picture(byId("edges"), model, this.camera);
    this.rings = new Rings(byId("rings"), model, this.camera, this.picture);
    const timeline = { box: byId("timeline"), canvas: byId("timeline-canvas"), brush: byId("brush"), fromHandle: byId("brush-from"), untilHandle: byId("brush-until"), range: byId("brush-range") };
    this.timeline = new Timeline(timeline, model, (from, until) => this.select(from, until));
    this.search = new Search(byId("search"), byId("suggestions"), model, (layer, node) => this.found(layer, node));
    this.pointers = new Map();
    this.theme = null; this.printing = false; this.frame = 0; this.settling = 0;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.makeMetrics();
    this.bind();
  }

  get isDark() { return !this.printing && (this.theme ? this.theme === "dark" : this.dark.matches); }

  get colors() {
    const style = getComputedStyle(document.documentElement), found = {};
    for (const name of ["ground", "ink", "soft", "line", "node", "node-other", "accent", "strong", "halo"])
      found[name === "node-other" ? "nodeOther" : name] = style.getPropertyValue(`--${name}`).trim();
    return found;
  }

  // ---- drawing

  setTheme() {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    byId("theme").setAttribute("aria-pressed", String(this.isDark));
  }

  resize() {
    const ratio = Math.min(3, window.devicePixelRatio || 1), { clientWidth, clientHeight } = this.stage;
    if (!clientWidth || !clientHeight) return;
    this.picture.resize(clientWidth, clientHeight, ratio);
    this.rings.resize(clientWidth, clientHeight, ratio);
    this.camera.margin = Rings.margin(this.model, clientWidth, clientHeight, this.rings.context);
    this.timeline.resize(ratio);
    this.drawAll();
  }

  drawAll() {
    this.setTheme();
    if (this.printing) { this.picture.paint(this.isDark); this.rings.draw(this.colors); } else this.repaint();
    this.timeline.draw(this.colors, this.isDark);
    this.drawNumbers();
  }

  // Draws everything that depends on the selected time, metric and isolation.
  drawNumbers() {
    const { model } = this;
    byId("range-text").textContent = `${timeText(model.began)} to ${timeText(model.ceased)}${model.isWhole ? " (whole run)" : ""}, ${plural(this.transferCount, "transfer")} over all hops`;
    byId("all-time").hidden = model.isWhole;
    byId("release").hidden = byId("selected-part").hidden = !model.isolated;
    byId("selected").replaceChildren(...(model.isolated ? [isolatedFacts(model, this.isDark)] : []));
    drawLegend(byId("legend"), model, this.isDark);
    this.drawLists();
    this.stage.setAttribute("aria-label", `Picture of the network: ${model.about.layers.map((layer) => plural(layer.labels.length, layer.name)).join(", ")}; ${metricTitle(model.about, model.metric)}`);
    this.tell();
  }

  // Rebuilds lists only if they change, so that a pressed button keeps the focus.
  drawLists() {
    const { model } = this;
    if (this.listed !== model.metric) {
      drawPatterns(byId("patterns-part"), byId("patterns"), this);
      if (this.listed === undefined) drawBottlenecks(byId("bottlenecks-part"), byId("bottlenecks"), this);
      this.listed = model.metric;
    }
    for (const entry of document.querySelectorAll("[data-entry]")) entry.setAttribute("aria-pressed", String(this.isEntry(entry.dataset.entry)));
    const tabled = `${model.metric} ${model.from} ${model.until}`;
    if (this.tabled !== tabled) { this.tabled = tabled; this.drawTables(); }
  }

  isEntry(key) { return Boolean(this.model.isolated) && this.model.isolated.entry === key; }

  drawTables() {
    if (byId("table-part").open) drawTables(byId("tables"), this, byId("table-order").value);
  }

  get transferCount() { return this.model.sums.transfers.reduce((sum, one) => sum + one, 0); }

  // Publishes the state as attributes of the root element, for tests and other programs.
  tell() {
    const { model } = this, data = document.documentElement.dataset;
    data.metric = model.now.name;
    data.windows = `${model.from}-${model.until}`;
    data.isolated = model.isolated ? (model.isolated.nodes || []).map((one) => model.nodeText(...one)).join("; ") || (model.isolated.edges || []).map((edge) => model.edgeText(edge)).join("; ") : "";
    data.redrawMs = this.picture.lastMs.toFixed(1);
    this.link();
  }

  // Writes the state into the address, so that a copied link shows the same.
  link() {
    const { model } = this, parts = [];
    if (model.metric !== model.about.metric) parts.push(`metric=${model.now.name}`);
    if (model.from !== model.initial[0] || model.until !== model.initial[1]) parts.push(`windows=${model.from}-${model.until}`);
    const nodes = model.isolated && !model.isolated.edges && model.isolated.nodes;
    if (nodes && nodes.length === 1) parts.push(`node=${nodes[0][0]}/${encodeURIComponent(model.about.layers[nodes[0][0]].labels[nodes[0][1]])}`);
    const hash = parts.length ? `#${parts.join("&")}` : "";
    // browsers may forbid or rate-limit changes of the address
    try { if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname); } catch { /* no link then */ }
  }

  // Restores the state from the address, if it fits this network.
  async follow(hash) {
    const { model } = this, said = new URLSearchParams(hash.slice(1));
    const metric = model.about.metrics.findIndex((one) => one.name === said.get("metric"));
    if (metric >= 0 && metric !== model.metric) await this.choose(metric);
    const [from, until] = (said.get("windows") || "").split("-").map(Number);
    if (Number.isInteger(from) && Number.isInteger(until) && from >= 0 && from < until && until <= model.windowCount) this.select(from, until);
    const [layer, ...label] = (said.get("node") || "").split("/"), known = model.about.layers[Number(layer)];
    const node = known && layer !== "" ? known.labels.indexOf(label.join("/")) : -1;
    if (node >= 0) this.found(Number(layer), node);
  }

  // Announces a text to screen readers, and cancels a delayed announcement.
  say(text) { clearTimeout(this.telling); byId("live").textContent = text; }

  // After a move, shows the old picture stretched, and repaints when the view is at rest.
  moved() {
    this.stage.classList.toggle("zoomed", this.camera.zoom > 1);
    byId("tooltip").hidden = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.picture.show(); this.rings.draw(this.colors); });
    clearTimeout(this.settling);
    this.settling = setTimeout(() => { this.picture.paint(this.isDark); this.tell(); }, 110);
  }

  // Repaints after a selection, at once; if there are many edges, first quickly and then at high resolution.
  repaint() {
    this.picture.paint(this.isDark, true);
    this.rings.draw(this.colors);
    if (!this.picture.hasQuick) return;
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.picture.paint(this.isDark), 250);
  }

  // ---- selection

  select(from, until) {
    if (!this.model.select(from, until)) return;
    // redraws once per frame, however fast the brush moves
    this.timeline.place();
    if (!this.pending) this.pending = requestAnimationFrame(() => { this.pending = 0; this.repaint(); this.drawNumbers(); });
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.say(`Selected ${byId("range-text").textContent}`), 400);
  }

  async choose(metric) {
    await this.model.choose(metric);
    byId(`metric-${metric}`).checked = true;
    this.drawAll();
    this.say(`Shown: ${metricTitle(this.model.about, metric)}`);
  }

  isolate(isolated) {
    this.model.isolate(isolated);
    this.repaint();
    this.drawNumbers();
    if (!isolated) { this.say("Released."); return; }
    const { nodes = [], edges = [], title } = isolated;
    if (nodes.length === 1 && !edges.length) this.say(`Isolated: ${nodeSentence(this.model, ...nodes[0])}`);
    else this.say(`Isolated: ${title || edges.map((edge) => this.model.edgeText(edge)).join(", ")}`);
  }

  found(layer, node) {
    this.rings.focus = [layer, node];
    const ring = this.model.rings[layer];
    this.isolate({ nodes: [[layer, node]] });
    const [x, y] = this.camera.place(ring.outer, ring.middles[node]);
    if (x < 0 || y < 0 || x > this.camera.width || y > this.camera.height) {
      this.camera.move(this.camera.width / 2 - x, this.camera.height / 2 - y);
      this.moved();
    }
  }

  makeMetrics() {
    const { model } = this;
    model.about.metrics.forEach((_, number) => {
      const input = element("input", { type: "radio", name: "metric", id: `metric-${number}`, value: number, onchange: () => this.choose(number) });
      input.checked = number === model.metric;
      const text = metricTitle(model.about, number);
      byId("metrics").append(element("label", {}, input, text[0].toUpperCase() + text.slice(1)));
    });
  }

  // ---- events

  bind() {
    const { stage } = this;
    stage.addEventListener("pointerdown", (event) => this.pointerDown(event));
    stage.addEventListener("pointermove", (event) => this.pointerMove(event));
    for (const kind of ["pointerup", "pointercancel"]) stage.addEventListener(kind, (event) => this.pointerUp(event));
    stage.addEventListener("pointerleave", () => this.point(null));
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.camera.zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018)), ...this.placeOf(event));
      this.moved();
    }, { passive: false });
    stage.addEventListener("keydown", (event) => this.press(event));
    stage.addEventListener("focus", () => this.focused(stage.matches(":focus-visible")));
    stage.addEventListener("blur", () => this.focused(false));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.model.isolated) this.isolate(null); });
    byId("zoom-in").addEventListener("click", () => this.zoom(1.6));
    byId("zoom-out").addEventListener("click", () => this.zoom(1 / 1.6));
    byId("zoom-reset").addEventListener("click", () => this.reset());
    byId("release").addEventListener("click", () => { this.isolate(null); stage.focus(); });
    byId("all-time").addEventListener("click", () => this.select(0, this.model.windowCount));
    byId("theme").addEventListener("click", () => { this.theme = this.isDark ? "light" : "dark"; this.drawAll(); });
    byId("table-part").addEventListener("toggle", () => this.drawTables());
    byId("table-order").addEventListener("change", () => this.drawTables());
    this.dark.addEventListener("change", () => this.drawAll());
    new ResizeObserver(() => this.resize()).observe(stage);
    new ResizeObserver(() => this.resize()).observe(byId("timeline"));
    window.addEventListener("beforeprint", () => { this.printing = true; this.drawAll(); });
    window.addEventListener("afterprint", () => { this.printing = false; this.drawAll(); });
  }

  placeOf(event) {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  pointerDown(event) {
    if (event.button) return;
    this.pointers.set(event.pointerId, this.placeOf(event));
    this.pressedAt = this.pointers.size === 1 ? this.placeOf(event) : null;
    this.stage.setPointerCapture(event.pointerId);
  }

  pointerMove(event) {
    const now = this.placeOf(event), before = this.pointers.get(event.pointerId);
    if (!before) { if (event.pointerType !== "touch") this.point(now); return; }
    this.pointers.set(event.pointerId, now);
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.camera.zoom > 1) { this.camera.move(now[0] - before[0], now[1] - before[1]); this.moved(); }
    if (this.pressedAt && Math.hypot(now[0] - this.pressedAt[0], now[1] - this.pressedAt[1]) > 5) {
      this.pressedAt = null;
      this.stage.classList.add("dragging");
    }
  }

  pinch(id, before, now) {
    const other = [...this.pointers].find(([key]) => key !== id)[1];
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    const grown = Math.hypot(now[0] - other[0], now[1] - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1]));
    this.camera.zoomAt(grown, ...middle);
    this.camera.move((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    this.moved();
  }

  pointerUp(event) {
    this.pointers.delete(event.pointerId);
    this.stage.classList.remove("dragging");
    if (event.type === "pointercancel" || !this.pressedAt) return;
    const [x, y] = this.pressedAt;
    this.pressedAt = null;
    const node = this.rings.nodeAt(x, y), edge = node ? -1 : this.picture.edgeAt(x, y);
    if (node) { this.rings.focus = node; this.isolate({ nodes: [node] }); } else if (edge >= 0) this.isolate({ edges: [edge] });
    else if (this.model.isolated) this.isolate(null);
  }

  // Shows the numbers of the node or edge under the pointer.
  point(place) {
    const node = place && this.rings.nodeAt(...place), edge = place && !node ? this.picture.edgeAt(...place) : -1;
    const pointed = node ? { layer: node[0], node: node[1], edge: -1 } : edge >= 0 ? { edge } : null;
    const key = pointed && `${pointed.layer} ${pointed.node} ${pointed.edge} ${this.model.metric} ${this.model.from} ${this.model.until}`;
    const tooltip = byId("tooltip");
    this.stage.classList.toggle("pointing", Boolean(pointed));
    if (key !== this.pointedKey) {
      this.pointedKey = key;
      this.rings.pointed = pointed;
      this.rings.draw(this.colors);
      if (pointed) tooltip.replaceChildren(node ? nodeFacts(this.model, ...node, this.isDark) : edgeFacts(this.model, edge, this.isDark));
    }
    tooltip.hidden = !pointed;
    if (pointed) this.putTooltip(tooltip, place);
  }

  putTooltip(tooltip, [x, y]) {
    const { clientWidth, clientHeight } = this.stage, wide = tooltip.offsetWidth, high = tooltip.offsetHeight;
    tooltip.style.left = `${Math.max(0, x + 18 + wide > clientWidth ? x - 18 - wide : x + 18)}px`;
    tooltip.style.top = `${Math.max(0, Math.min(clientHeight - high, y + 14))}px`;
  }

  zoom(factor) { this.camera.zoomAt(factor, this.camera.width / 2, this.camera.height / 2); this.moved(); }

  reset() { Object.assign(this.camera, { zoom: 1, x: 0, y: 0 }); this.moved(); }

  focused(hasFocus) {
    this.rings.hasFocus = hasFocus;
    this.rings.focus ||= [0, this.model.rings[0].order[0]];
    this.rings.draw(this.colors);
    if (hasFocus) this.tellFocus();
  }

  tellFocus() {
    const text = nodeSentence(this.model, ...this.rings.focus);
    byId("focus-text").textContent = text;
    this.say(text);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { rings, model } = this, long = event.shiftKey ? 10 : 1;
    const moves = { ArrowRight: [0, long], ArrowLeft: [0, -long], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };
    const pans = { w: [0, 60], s: [0, -60], a: [60, 0], d: [-60, 0] };
    const acts = { "+": () => this.zoom(1.6), "=": () => this.zoom(1.6), "-": () => this.zoom(1 / 1.6), 0: () => this.reset(),
      Enter: () => this.isolate({ nodes: [rings.focus] }), " ": () => this.isolate({ nodes: [rings.focus] }) };
    if (moves[event.key]) this.step(...moves[event.key]);
    else if (pans[event.key]) { this.camera.move(...pans[event.key]); this.moved(); }
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault();
    rings.hasFocus = true;
    rings.draw(this.colors);
  }

  // Moves the focus by rings or by nodes; on another ring, to the node at the nearest angle.
  step(byRings, byNodes) {
    const { rings, model } = this;
    let [layer, node] = rings.focus;
    const ring = model.rings[layer], count = ring.order.length;
    if (byRings) {
      const next = Math.max(0, Math.min(model.rings.length - 1, layer + byRings));
      if (next !== layer) {
        const angle = ring.middles[node], middles = model.rings[next].middles;
        const away = (one) => Math.abs(((middles[one] - angle + 3 * Math.PI) % TURN) - Math.PI);
        node = model.rings[next].order.reduce((best, one) => (away(one) < away(best) ? one : best));
        layer = next;
      }
    } else if (!Number.isFinite(byNodes)) node = ring.order[byNodes < 0 ? 0 : count - 1];
    else node = ring.order[(((ring.places[node] + byNodes) % count) + count) % count];
    rings.focus = [layer, node];
    this.tellFocus();
  }
}

// A read-only view of the page's state; positions are relative to the window.
function published(app) {
  const { model, picture, rings } = app;
  const onStage = (x, y) => { const box = app.stage.getBoundingClientRect(); return [x - box.left, y - box.top]; };
  const onWindow = ([x, y]) => { const box = app.stage.getBoundingClientRect(); return [x + box.left, y + box.top]; };
  return Object.freeze({
    get metric() { return model.now.name; },
    get windows() { return [model.from, model.until]; },
    get isolated() { return model.isolated ? { nodes: model.isolated.nodes || [], edges: [...model.isolated.all] } : null; },
    get redrawMs() { return picture.lastMs; },
    get zoom() { return app.camera.zoom; },
    get marks() { return model.requestNodes(); },
    edgeText: (edge) => model.edgeText(edge),
    countsOf: (edge) => Array.from(model.histogram([edge])),
    totalsOf: (edge) => model.total([edge]),
    edgeAt: (x, y) => picture.edgeAt(...onStage(x, y)),
    nodeAt: (x, y) => rings.nodeAt(...onStage(x, y)),
    placeOfEdge: (edge, fraction = 0.5) => onWindow(picture.pointOf(edge, fraction)),
    placeOfNode: (layer, node) => {
      const ring = model.rings[layer];
      return onWindow(app.camera.place((ring.inner + ring.outer) / 2, ring.middles[node]));
    },
  });
}

async function begin() {
  if (typeof DecompressionStream === "undefined") {
    complain("This browser is too old for this page: it has no DecompressionStream (Chromium 80, Firefox 113, Safari 16.4).");
    return;
  }
  const about = JSON.parse(byId("about").textContent);
  const edges = await loadEdges(about);
  const model = new Model(about, edges, await loadTotals(about, edges.edgeCount), await loadTimeline(about));
  await model.choose(model.metric);
  byId("main").hidden = false;
  byId("subtitle").textContent = `${about.finding ? `${about.finding}. ` : ""}${about.layers.map((layer) => plural(layer.memberCount, layer.name)).join(", ")}`;
  const app = new App(model);
  drawNotes(byId("notes-part"), byId("notes"), about);
  app.setTheme();
  const hash = location.hash;
  app.resize();
  await app.follow(hash);
  window.iosig = published(app);
  document.documentElement.dataset.ready = "yes";
}

begin().catch((error) => complain(`This page could not be drawn: ${error.message}`));
