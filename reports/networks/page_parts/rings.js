// Draws vector graphics over the edges: rings, labels, the value axis, and marks for focused and isolated elements.
class Rings {
  constructor(canvas, model, camera, picture) {
    Object.assign(this, { canvas, model, camera, picture });
    this.context = canvas.getContext("2d");
    this.focus = null; this.pointed = null; this.hasFocus = false;
  }

  resize(width, height, ratio) {
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio); this.canvas.height = Math.round(height * ratio);
  }

  // The space around the picture for the outermost labels.
  static margin(model, width, height, context) {
    const size = Math.min(width, height) / 2, { labels, groupSize } = model.about.layers[0];
    context.font = "11px system-ui, sans-serif";
    const step = Math.ceil(labels.length / 300), some = labels.filter((_, node) => node % step === 0);
    const widest = Math.max(0, ...some.map((label) => context.measureText(cut(firstMember(label, groupSize), 14)).width));
    return Math.min(size * 0.3, 16 + widest);
  }

  draw(colors) {
    const { context, ratio, camera } = this;
    this.colors = colors;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    this.model.rings.forEach((ring, layer) => this.drawRing(ring, layer));
    this.drawAxes();
    this.model.rings.forEach((ring, layer) => this.drawLabels(ring, layer));
    this.drawMarks();
  }

  segment(ring, begin, end) {
    const { context, camera } = this, [x, y] = camera.center, turn = -Math.PI / 2;
    context.moveTo(...camera.place(ring.outer, begin));
    context.arc(x, y, camera.radius * ring.outer, begin + turn, end + turn);
    if (ring.inner > 0) context.arc(x, y, camera.radius * ring.inner, end + turn, begin + turn, true);
    else context.lineTo(x, y);
    context.closePath();
  }

  drawRing(ring, layer) {
    const { context, camera, colors, model } = this, [x, y] = camera.center;
    const narrow = (TURN * camera.radius * ring.outer) / ring.order.length < 1.5;
    context.globalAlpha = model.isolated ? 0.45 : 1;
    if (narrow) {
      context.fillStyle = colors.node;
      context.beginPath();
      context.arc(x, y, camera.radius * ring.outer, 0, TURN);
      if (ring.inner > 0) context.arc(x, y, camera.radius * ring.inner, 0, TURN, true);
      context.fill();
    } else {
      for (const parity of [0, 1]) {
        context.fillStyle = parity ? colors.nodeOther : colors.node;
        context.beginPath();
        ring.order.forEach((node, place) => {
          if (place % 2 === parity && this.isSeen(ring, node)) this.segment(ring, ring.begins[node], ring.ends[node]);
        });
        context.fill();
      }
    }
    context.globalAlpha = 1;
    if (model.isolated) this.drawIsolated(ring, layer);
  }

  isSeen(ring, node) {
    if (this.camera.zoom < 3) return true;
    const [x, y] = this.camera.place(ring.outer, ring.middles[node]), reach = (ring.ends[node] - ring.begins[node]) * this.camera.radius + 60;
    return x > -reach && y > -reach && x < this.camera.width + reach && y < this.camera.height + reach;
  }

  drawIsolated(ring, layer) {
    const { context, colors, model } = this, marked = model.isolated.marked[layer];
    for (const kind of [1, 2]) {
      context.beginPath();
      for (let node = 0; node < marked.length; node++) if (marked[node] === kind) this.segment(ring, ring.begins[node], ring.ends[node]);
      context.fillStyle = kind === 2 ? colors.strong : colors.soft;
      context.strokeStyle = context.fillStyle;
      context.lineWidth = kind === 2 ? 2 : 0.8;
      context.fill();
      context.stroke();
    }
  }

  // Draws circles at the ticks, labeled along the line to the top.
  drawAxes() {
    const { context, camera, colors, model } = this, [x, y] = camera.center;
    const metric = model.now;
    if (!metric.slots) return;
    context.font = "10.5px system-ui, sans-serif";
    context.textAlign = "center"; context.textBaseline = "middle";
    // if zoomed in, the labels lie along the line through the middle of the view, since the top may be out of sight
    const angle = camera.zoom > 1.3 ? camera.polar(camera.width / 2, camera.height / 2)[1] : 0;
    model.about.hops.forEach((_, hop) => {
      const low = model.rings[hop + 1].outer, high = model.rings[hop].inner;
      const room = (high - low) * camera.radius;
      let last = -Infinity;
      for (const { place, text } of axisTicks(metric, Math.max(2, Math.floor(room / 26)))) {
        const radius = (low + (high - low) * place) * camera.radius;
        context.strokeStyle = colors.line; context.globalAlpha = 0.55; context.lineWidth = 1;
        context.beginPath(); context.arc(x, y, radius, 0, TURN); context.stroke();
        context.globalAlpha = 1;
        if (radius - last < 13) continue;
        last = radius;
        this.halo(text, x + radius * Math.sin(angle), y - radius * Math.cos(angle), colors.ink);
      }
    });
  }

  halo(text, x, y, color) {
    const { context, colors } = this;
    context.lineWidth = 3.5; context.lineJoin = "round";
    context.strokeStyle = colors.halo; context.strokeText(text, x, y);
    context.fillStyle = color; context.fillText(text, x, y);
  }

  drawLabels(ring, layer) {
    const { context, camera, colors, model } = this, { labels, groupSize } = model.about.layers[layer];
    const isInnermost = layer === model.rings.length - 1, isOutermost = layer === 0;
    const thick = (ring.outer - ring.inner) * camera.radius, middle = isInnermost && ring.inner === 0 ? ring.outer * 0.72 : (ring.outer + ring.inner) / 2;
    const arc = (TURN * camera.radius * (isInnermost ? middle : ring.outer)) / ring.order.length;
    const fewMarked = model.isolated ? model.isolated.marked[layer].reduce((sum, one) => sum + (one > 0), 0) : 0;
    // if few nodes are isolated, only these and their neighbors are named
    const step = arc < 9 && isOutermost && (!model.isolated || fewMarked > 12) ? labelStep(ring.order.length, arc) : 1;
    const size = Math.max(9, Math.min(12, arc * step * 0.9, isOutermost ? 12 : thick - 4));
    if (arc < 9 && step === 1 && !model.isolated) return;
    const round = 8 * middle * camera.radius * Math.max(0, thick - size), along = Math.min(arc - 6, Math.sqrt(round));
    context.font = `${size}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const most = isOutermost ? 14 : 22;
    const isolatedLayer = model.isolated && model.isolated.nodes ? model.isolated.nodes[0][0] : layer;
    ring.order.forEach((node, place) => {
      // skip the last label if it is too close to the first one
      if (step > 1 && (place % step || ring.order.length - place < step)) return;
      if (!this.isSeen(ring, node)) return;
      const isMarked = model.isolated && model.isolated.marked[layer][node];
      if (arc < 9 && step === 1 && (!isMarked || (isMarked === 1 && fewMarked > 12))) return;
      const text = cut(step > 1 ? firstMember(labels[node], groupSize) : labels[node], most), width = context.measureText(text).width;
      // a label that is too long for the arc or its curvature is shortened in the middle, or dropped if little remains
      const kept = Math.floor((text.length * along) / width), short = width < along ? text : kept < MIN_SHORT_CHARS ? "" : cut(text, kept);
      const color = isMarked === 2 ? colors.strong : colors.ink;
      if (isInnermost && ring.inner === 0 && ring.order.length === 1) this.middle(text, width < 2 * thick - 6, color);
      else if (isOutermost) this.radial(text, ring.outer * camera.radius + 5, ring.middles[node], color, true);
      else if (size < thick && short) this.tangential(short, middle * camera.radius, ring.middles[node], colors.ground);
      else if (isInnermost && width + 8 < thick) this.radial(text, ring.outer * camera.radius - 5, ring.middles[node], colors.ground, false);
      // labels next to an inner ring hide edges, so only few are drawn
      // a label is inside the ring if the node's edges lead outwards
      else if (isMarked === 1 && fewMarked <= 12 && isolatedLayer < layer && !isInnermost) this.radial(text, ring.inner * camera.radius - 4, ring.middles[node], color, false);
      else if (isMarked === 2 || (isMarked && fewMarked <= 12)) this.radial(text, ring.outer * camera.radius + 4, ring.middles[node], color, true);
    });
  }

  middle(text, fits, color) {
    const { context } = this;
    context.textAlign = "center";
    if (fits) { context.fillStyle = this.colors.ground; context.fillText(text, ...this.camera.center); }
    else this.halo(text, ...this.camera.center, color);
  }

  radial(text, radius, angle, color, isOutward) {
    const { context } = this, [x, y] = this.camera.center;
    const isLeft = angle > Math.PI;
    context.save();
    context.translate(x + radius * Math.sin(angle), y - radius * Math.cos(angle));
    context.rotate(angle + (isLeft ? Math.PI / 2 : -Math.PI / 2));
    context.textAlign = isLeft === isOutward ? "right" : "left";
    if (color === this.colors.ground) { context.fillStyle = color; context.fillText(text, 0, 0); }
    else this.halo(text, 0, 0, color);
    context.restore();
  }

  tangential(text, radius, angle, color) {
    const { context } = this, [x, y] = this.camera.center;
    const isBelow = angle > Math.PI / 2 && angle < 1.5 * Math.PI;
    context.save();
    context.translate(x + radius * Math.sin(angle), y - radius * Math.cos(angle));
    context.rotate(angle + (isBelow ? Math.PI : 0));
    context.textAlign = "center";
    context.fillStyle = color;
    context.fillText(text, 0, 0);
    context.restore();
  }

  // Draws circles at nodes that issued outlier requests, and labels the slowest nodes with their slowdown.
  drawFindings() {
    const { context, colors, camera, model } = this;
    if (model.isolated) return;
    for (const [layer, node] of model.requestNodes()) {
      const ring = model.rings[layer];
      context.beginPath();
      context.arc(...camera.place((ring.inner + ring.outer) / 2, ring.middles[node]), 8, 0, TURN);
      context.strokeStyle = colors.ground; context.lineWidth = 4.5; context.stroke();
      context.strokeStyle = colors.strong; context.lineWidth = 2; context.stroke();
    }
    context.font = "bold 11px system-ui, sans-serif"; context.textBaseline = "middle";
    for (const { layer, nodes, ratios } of model.about.slow) {
      const ring = model.rings[layer];
      if (ratios[0] < SLOW || !ring.inner) continue;
      this.radial(`${cut(model.about.layers[layer].labels[nodes[0]], 14)} \u00d7 ${ratios[0].toFixed(2)}`, ring.inner * camera.radius - 12, ring.middles[nodes[0]], colors.strong, false);
    }
  }

  drawMarks() {
    const { context, colors, model } = this;
    this.drawFindings();
    if (this.pointed && this.pointed.edge >= 0) {
      context.beginPath();
      const count = 64;
      for (let i = 0; i <= count; i++) context.lineTo(...this.picture.pointOf(this.pointed.edge, i / count));
      context.strokeStyle = colors.halo; context.lineWidth = 4; context.stroke();
      context.strokeStyle = colors.ink; context.lineWidth = 1.5; context.stroke();
      const hop = model.hops[this.pointed.edge];
      this.outline(hop, model.sources[this.pointed.edge], colors.ink);
      this.outline(hop + 1, model.targets[this.pointed.edge], colors.ink);
    } else if (this.pointed) this.outline(this.pointed.layer, this.pointed.node, colors.ink);
    if (this.focus && this.hasFocus) this.outline(...this.focus, colors.accent);
  }

  outline(layer, node, color) {
    const { context, camera } = this, ring = this.model.rings[layer];
    // narrow segments are drawn wider, so that they are visible
    const least = 5 / (camera.radius * ring.outer), lacking = Math.max(0, least - (ring.ends[node] - ring.begins[node])) / 2;
    context.beginPath();
    this.segment(ring, ring.begins[node] - lacking, ring.ends[node] + lacking);
    context.strokeStyle = this.colors.ground; context.lineWidth = 5; context.stroke();
    context.strokeStyle = color; context.lineWidth = 2.5; context.stroke();
  }

  // The node at a position on the stage, as layer and number.
  nodeAt(x, y) {
    const [radius, angle] = this.camera.polar(x, y), reach = 3 / this.camera.radius;
    const layer = this.model.rings.findIndex((ring) => radius <= ring.outer + reach && radius >= ring.inner - reach);
    if (layer < 0) return null;
    const ring = this.model.rings[layer];
    let low = 0, high = ring.order.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (ring.begins[ring.order[middle]] <= angle) low = middle; else high = middle - 1;
    }
    // the last segment may extend beyond a full turn
    for (const place of [low, ring.order.length - 1]) {
      const node = ring.order[place], gap = 2 / (this.camera.radius * ring.outer);
      for (const turned of [angle, angle + TURN])
        if (turned >= ring.begins[node] - gap && turned <= ring.ends[node] + gap) return [layer, node];
    }
    return null;
  }
}

// Minimum length of a shortened name; minimum distance between names on the outermost ring [pixels].
const MIN_SHORT_CHARS = 8, LABEL_PIXELS = 40;

// Threshold for slow nodes: their time divided by the median time of their layer.
const SLOW = 2;

// The stride between named nodes: a power of two for multiples of 64 nodes, else 2, 5, 10 and so on.
function labelStep(count, arc) {
  const isBinary = count >= 64 && count % 64 === 0;
  for (let power = 0; ; power++)
    for (const step of isBinary ? [2 ** power] : [10 ** power, 2 * 10 ** power, 5 * 10 ** power])
      if (step > 1 && (step >= count || step * arc >= LABEL_PIXELS)) return step;
}

// The first member of a group, from the group's label.
function firstMember(label, groupSize) {
  if (groupSize === 1) return label;
  const found = /^(\d+)-\d+$/.exec(label) || /^([^]+?) to [^]+$/.exec(label);
  return found ? found[1] : label;
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.ceil(most / 2))}…${text.slice(-Math.floor(most / 2) + 1)}` : text);

// Ticks of a metric's axis: their places, from 0 (lowest) to 1, and their labels.
function axisTicks(metric, most) {
  const { said, slots, special } = metric, ticks = [];
  if (said.hasNegative) ticks.push({ place: 0.5 / slots, text: "< 0" });
  if (said.hasZero) ticks.push({ place: (special - 0.5) / slots, text: "0" });
  if (slots === special) return ticks;
  const low = said.lowest[special], high = said.highest[slots - 1];
  const at = (value) => (special + ((slots - special) * Math.log(value / low)) / Math.log(high / low)) / slots;
  let values = decades(low, high, most);
  if (values.length < 2) values = [low, Math.sqrt(low * high), high];
  for (const value of values) ticks.push({ place: at(value), text: valueText(metric.name, value) });
  return ticks;
}
