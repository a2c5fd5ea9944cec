// The selection of time, metric and isolated nodes, and the sums over the selection.
class Model {
  constructor(about, edges, totals, timeline) {
    Object.assign(this, { about, totals, timeline }, edges);
    this.windowCount = about.windowEdges.length - 1;
    this.metrics = about.metrics.map(() => null);
    this.metric = about.metric;
    this.from = Math.max(0, Math.min(about.windows[0], this.windowCount - 1));
    this.until = Math.max(this.from + 1, Math.min(about.windows[1], this.windowCount));
    if (!totals.windows) { this.from = 0; this.until = this.windowCount; }
    this.initial = [this.from, this.until];
    this.isolated = null;
    this.findInEdges();
    this.sumTotals();
  }

  get isWhole() { return this.from === 0 && this.until === this.windowCount; }
  // Whether counts of the selected range are rounded, or distributed over merged slots.
  get isRounded() {
    const detail = this.about.detail;
    return detail.wholeBits > 0 || (!this.isWhole && (detail.countBits > 0 || this.now.said.slotFactor > 1));
  }
  get areTotalsRounded() { return !this.isWhole && this.about.detail.totalBits > 0; }
  get now() { return this.metrics[this.metric]; }
  get began() { return this.about.windowEdges[this.from]; }
  get ceased() { return this.about.windowEdges[this.until]; }

  // The nodes that issued outlier requests of the metric, each once: layer and number.
  requestNodes() {
    const found = new Map();
    for (const row of this.about.bottlenecks) {
      const layer = this.about.layers.findIndex((one) => one.name === row.sourceLayer);
      const node = layer < 0 || row.metric !== this.metric ? -1 : this.about.layers[layer].labels.indexOf(row.source);
      if (node >= 0) found.set(`${layer} ${node}`, [layer, node]);
    }
    return [...found.values()];
  }

  // Indexes the edges by target; the edges are already sorted by source.
  findInEdges() {
    this.outBegins = []; this.inBegins = []; this.inEdges = [];
    this.about.hops.forEach((_, hop) => {
      const [first, last] = [this.firsts[hop], this.firsts[hop + 1]];
      const outs = new Uint32Array(this.rings[hop].order.length + 1), ins = new Uint32Array(this.rings[hop + 1].order.length + 1);
      for (let e = first; e < last; e++) { outs[this.sources[e] + 1]++; ins[this.targets[e] + 1]++; }
      for (const begins of [outs, ins]) for (let n = 1; n < begins.length; n++) begins[n] += begins[n - 1];
      const places = ins.slice(), found = new Uint32Array(last - first);
      for (let e = first; e < last; e++) found[places[this.targets[e]]++] = e;
      this.outBegins.push(outs.map((begin) => begin + first)); this.inBegins.push(ins); this.inEdges.push(found);
    });
  }

  outEdges(layer, node) {
    if (layer >= this.about.hops.length) return [];
    const [from, until] = [this.outBegins[layer][node], this.outBegins[layer][node + 1]];
    return Array.from({ length: until - from }, (_, i) => from + i);
  }

  inEdgesOf(layer, node) {
    if (layer === 0) return [];
    const begins = this.inBegins[layer - 1];
    return Array.from(this.inEdges[layer - 1].subarray(begins[node], begins[node + 1]));
  }

  async choose(metric) {
    if (!this.metrics[metric]) this.metrics[metric] = await loadMetric(this.about, metric);
    this.metric = metric;
    this.sumCounts();
  }

  select(from, until) {
    if (!this.totals.windows) return false;
    from = Math.max(0, Math.min(this.windowCount - 1, from));
    until = Math.max(from + 1, Math.min(this.windowCount, until));
    if (from === this.from && until === this.until) return false;
    this.from = from; this.until = until;
    this.sumCounts(); this.sumTotals();
    return true;
  }

  sumTotals() {
    const { whole, windows } = this.totals;
    if (this.isWhole) { this.sums = whole; return; }
    const zeros = () => new Float64Array(this.edgeCount);
    const sums = { transfers: zeros(), read: zeros(), written: zeros(), longest: zeros() };
    for (let i = windows.begins[this.from]; i < windows.begins[this.until]; i++) {
      const edge = windows.numbers[i];
      sums.transfers[edge] += windows.transfers[i];
      sums.read[edge] += windows.read[i];
      sums.written[edge] += windows.written[i];
      if (windows.longest[i] > sums.longest[edge]) sums.longest[edge] = windows.longest[i];
    }
    this.sums = sums;
  }

  // Sums the counts of each cell (edge and slot) over the selected windows.
  sumCounts() {
    const metric = this.now, size = this.edgeCount * metric.slots;
    const counts = (this.counts = this.counts && this.counts.length === size ? this.counts.fill(0) : new Float64Array(size));
    if (this.isWhole) for (let i = 0; i < metric.cells.length; i++) counts[metric.cells[i]] = metric.counts[i];
    else if (metric.said.slotFactor > 1) this.shareOut(counts);
    else this.addWindows(metric.windows, counts);
    this.levels = this.levelsOf(counts, metric.slots);
  }

  addWindows(windows, into) {
    const { numbers, counts } = windows;
    for (let i = windows.begins[this.from], end = windows.begins[this.until]; i < end; i++) into[numbers[i]] += counts[i];
    return into;
  }

  // Distributes the counts of merged slots over the single slots, in proportion to their counts in the whole run.
  shareOut(counts) {
    const metric = this.now;
    metric.shares ||= this.sharesOf(metric);
    const { places, ratios } = metric.shares;
    const sums = this.addWindows(metric.windows, new Float64Array(this.edgeCount * metric.said.coarseSlots));
    for (let i = 0; i < places.length; i++) counts[metric.cells[i]] = sums[places[i]] * ratios[i];
  }

  // For each cell, the merged slot that contains it in single windows, and its fraction of the merged slot's counts in
  // the whole run.
  sharesOf(metric) {
    const { slotFactor, coarseSlots } = metric.said, count = metric.cells.length;
    const places = new Uint32Array(count), ratios = new Float64Array(count), wholes = new Float64Array(this.edgeCount * coarseSlots);
    for (let i = 0; i < count; i++) {
      const cell = metric.cells[i], edge = Math.floor(cell / metric.slots), slot = cell - edge * metric.slots;
      const place = slot < metric.special ? slot : metric.special + Math.floor((slot - metric.special) / slotFactor);
      places[i] = edge * coarseSlots + place;
      wholes[places[i]] += metric.counts[i];
    }
    for (let i = 0; i < count; i++) ratios[i] = metric.counts[i] / wholes[places[i]];
    return { places, ratios };
  }

  // Levels of cells: 0 for none, else 1 to 253 on a log scale from one transfer to the hop's maximum.
  levelsOf(counts, slots) {
    const levels = new Uint8Array(counts.length);
    this.most = this.about.hops.map((_, hop) => {
      const [first, last] = [this.firsts[hop] * slots, this.firsts[hop + 1] * slots];
      let most = this.about.shared ? this.about.shared.counts[this.metric][hop] : 0;
      for (let i = first; i < last; i++) if (counts[i] > most) most = counts[i];
      const scale = most > 1 ? 252 / Math.log(most) : 0;
      for (let i = first; i < last; i++) {
        const count = counts[i];
        if (count > 0) levels[i] = 1 + (count > 1 ? Math.log(count) * scale : 0);
      }
      return most;
    });
    return levels;
  }

  // The range of windows that contains a time span.
  windowsOf(beganS, ceasedS) {
    const edges = this.about.windowEdges, slack = 1e-9 * (edges[this.windowCount] - edges[0]);
    let from = 0;
    while (from < this.windowCount - 1 && edges[from + 1] <= beganS + slack) from++;
    let until = from + 1;
    while (until < this.windowCount && edges[until] < ceasedS - slack) until++;
    return [from, until];
  }

  histogram(edges) {
    const slots = this.now.slots, sums = new Float64Array(slots);
    for (const edge of edges) for (let slot = 0; slot < slots; slot++) sums[slot] += this.counts[edge * slots + slot];
    return sums;
  }

  hopHistogram(hop) {
    const slots = this.now.slots, sums = new Float64Array(slots);
    for (let i = this.firsts[hop] * slots, end = this.firsts[hop + 1] * slots; i < end; i += slots)
      for (let slot = 0; slot < slots; slot++) sums[slot] += this.counts[i + slot];
    return sums;
  }

  // The median, interpolated within a slot on a log scale; 0 or -Infinity in the slots of zero and negative values.
  median(histogram) {
    const { lowest, highest } = this.now.said;
    const half = histogram.reduce((sum, one) => sum + one, 0) / 2;
    if (!half) return NaN;
    let sum = 0;
    for (let slot = 0; slot < histogram.length; slot++) {
      if (sum + histogram[slot] < half || !histogram[slot]) { sum += histogram[slot]; continue; }
      if (slot < this.now.special) return slot === 0 && this.now.said.hasNegative ? -Infinity : 0;
      return lowest[slot] * (highest[slot] / lowest[slot]) ** ((half - sum) / histogram[slot]);
    }
    return NaN;
  }

  // The upper edge of the highest slot with transfers.
  highest(histogram) {
    for (let slot = histogram.length - 1; slot >= 0; slot--)
      if (histogram[slot] > 0) return slot < this.now.special ? (slot === 0 && this.now.said.hasNegative ? -Infinity : 0) : this.now.said.highest[slot];
    return NaN;
  }

  total(edges) {
    const sums = { transfers: 0, read: 0, written: 0, longest: 0 };
    for (const edge of edges) {
      sums.transfers += this.sums.transfers[edge];
      sums.read += this.sums.read[edge];
      sums.written += this.sums.written[edge];
      sums.longest = Math.max(sums.longest, this.sums.longest[edge]);
    }
    return sums;
  }

  label(layer, node) { return this.about.layers[layer].labels[node]; }
  nodeText(layer, node) {
    const one = this.about.layers[layer], label = one.labels[node];
    return label.toLowerCase().startsWith(one.name.toLowerCase()) ? label : `${one.name} ${label}`;
  }
  edgeText(edge) {
    const hop = this.hops[edge];
    return `${this.nodeText(hop, this.sources[edge])} → ${this.nodeText(hop + 1, this.targets[edge])}`;
  }
  hopText(hop) { return `${this.about.layers[hop].name} → ${this.about.layers[hop + 1].name}`; }

  isolate(isolated) {
    this.isolated = isolated;
    if (!isolated) return;
    const mask = (isolated.mask = new Uint8Array(this.edgeCount));
    isolated.marked = this.rings.map((ring) => new Uint8Array(ring.order.length));
    for (const edge of isolated.edges || []) this.mark(edge);
    for (const [layer, node] of isolated.nodes || []) {
      isolated.marked[layer][node] = 2;
      for (const edge of [...this.outEdges(layer, node), ...this.inEdgesOf(layer, node)]) this.mark(edge);
    }
    isolated.all = [];
    for (let edge = 0; edge < mask.length; edge++) if (mask[edge]) isolated.all.push(edge);
  }

  mark(edge) {
    const { mask, marked } = this.isolated, hop = this.hops[edge];
    mask[edge] = 1;
    marked[hop][this.sources[edge]] ||= 1;
    marked[hop + 1][this.targets[edge]] ||= 1;
  }
}
