// Values over time, in a strip for each pair of layers: a line at the mean that fades toward the minimum and maximum
// (Sigovan et al., Figure 2). A rectangle marks the selected range of time windows.
class Timeline {
  constructor(elements, model, changed) {
    Object.assign(this, elements, { model, changed });
    this.left = 64; this.right = 10; this.below = 18; this.dragged = null;
    this.bind();
  }

  get strip() { return this.model.about.hops.length > 2 ? 44 : 58; }

  resize(ratio) {
    this.ratio = ratio;
    this.width = this.box.clientWidth;
    this.height = this.strip * this.model.about.hops.length + this.below;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * ratio); this.canvas.height = Math.round(this.height * ratio);
  }

  x(time) {
    const { began, ceased } = this.model.about.stepEdges;
    return this.left + ((time - began) / (ceased - began)) * (this.width - this.left - this.right);
  }

  windowAt(clientX) {
    const { began, ceased } = this.model.about.stepEdges;
    const part = (clientX - this.box.getBoundingClientRect().left - this.left) / (this.width - this.left - this.right);
    const time = began + Math.max(0, Math.min(1, part)) * (ceased - began), edges = this.model.about.windowEdges;
    let window = 0;
    while (window < this.model.windowCount - 1 && edges[window + 1] <= time) window++;
    return window;
  }

  draw(colors, isDark) {
    const context = this.canvas.getContext("2d"), { model } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "10.5px system-ui, sans-serif";
    model.about.hops.forEach((_, hop) => this.drawStrip(context, colors, hop, isDark));
    this.drawTimes(context, colors);
    this.place();
  }

  drawStrip(context, colors, hop, isDark) {
    const { model } = this, part = model.timeline[model.metric][hop], top = hop * this.strip + 3, bottom = (hop + 1) * this.strip - 5;
    context.strokeStyle = colors.line; context.lineWidth = 1;
    context.strokeRect(this.left + 0.5, top + 0.5, this.width - this.left - this.right - 1, bottom - top);
    context.fillStyle = colors.soft; context.textBaseline = "middle"; context.textAlign = "right";
    const scale = verticalScale(part, model.about.shared && model.about.shared.ranges[model.metric][hop]);
    if (!part.steps.length || !scale) {
      context.textAlign = "center";
      context.fillText(`${model.hopText(hop)}: no ${metricName(model.about, model.metric, hop)} is known`, (this.left + this.width) / 2, (top + bottom) / 2);
      return;
    }
    const y = (value) => bottom - 2 - scale.part(value) * (bottom - top - 4);
    for (const tick of scale.ticks) {
      context.fillText(valueText(model.now.name, tick), this.left - 6, y(tick));
      context.globalAlpha = 0.6;
      context.beginPath(); context.moveTo(this.left, y(tick)); context.lineTo(this.width - this.right, y(tick)); context.stroke();
      context.globalAlpha = 1;
    }
    this.drawSteps(context, part, y, hopColor(model.about, hop, isDark));
    context.textAlign = "left"; context.textBaseline = "top"; context.lineWidth = 3; context.strokeStyle = colors.halo; context.fillStyle = colors.soft;
    const name = `${model.hopText(hop)}: ${metricName(model.about, model.metric, hop)}`;
    context.strokeText(name, this.left + 5, top + 3); context.fillText(name, this.left + 5, top + 3);
  }

  drawSteps(context, part, y, [r, g, b]) {
    const { began, ceased, count } = this.model.about.stepEdges, long = (ceased - began) / count;
    const solid = `rgb(${r}, ${g}, ${b})`, faint = `rgba(${r}, ${g}, ${b}, 0)`, half = `rgba(${r}, ${g}, ${b}, 0.75)`;
    for (let i = 0; i < part.steps.length; i++) {
      const left = this.x(began + part.steps[i] * long), wide = Math.max(1, this.x(began + (part.steps[i] + 1) * long) - left);
      const mean = y(part.mean[i]);
      for (const end of [y(part.most[i]), y(part.least[i])]) {
        if (Math.abs(end - mean) < 0.5) continue;
        const gradient = context.createLinearGradient(0, mean, 0, end);
        gradient.addColorStop(0, half); gradient.addColorStop(1, faint);
        context.fillStyle = gradient;
        context.fillRect(left, Math.min(mean, end), wide, Math.abs(end - mean));
      }
    }
    context.strokeStyle = solid; context.lineWidth = 1.6; context.lineJoin = "round";
    context.beginPath();
    for (let i = 0; i < part.steps.length; i++) {
      const left = this.x(began + part.steps[i] * long), right = this.x(began + (part.steps[i] + 1) * long), mean = y(part.mean[i]);
      if (!i || part.steps[i] !== part.steps[i - 1] + 1) context.moveTo(left, mean); else context.lineTo(left, mean);
      context.lineTo(Math.max(right, left + 1), mean);
    }
    context.stroke();
  }

  drawTimes(context, colors) {
    const { began, ceased } = this.model.about.stepEdges, bottom = this.height - this.below;
    context.fillStyle = colors.soft; context.textBaseline = "top"; context.textAlign = "center";
    const ticks = linearTicks(began, ceased, Math.max(2, Math.floor(this.width / 110)));
    for (const tick of ticks) {
      const text = timeText(tick), half = context.measureText(text).width / 2;
      context.fillText(text, Math.max(half, Math.min(this.width - half, this.x(tick))), bottom + 3);
    }
  }

  // Moves the rectangle and its handles to the selected range.
  place() {
    const { model } = this, [left, right] = [this.x(model.began), this.x(model.ceased)], height = this.height - this.below;
    Object.assign(this.brush.style, { left: `${left}px`, width: `${Math.max(2, right - left)}px`, height: `${height}px` });
    this.brush.classList.toggle("whole", model.isWhole);
    Object.assign(this.range.style, { left: `${left}px`, width: `${Math.max(2, right - left)}px` });
    this.fromHandle.style.left = `${left}px`; this.untilHandle.style.left = `${right}px`;
    for (const handle of [this.fromHandle, this.untilHandle]) handle.style.height = `${height}px`;
    const text = `${timeText(model.began)} to ${timeText(model.ceased)}`;
    describe(this.fromHandle, 0, model.until - 1, model.from, `from ${timeText(model.began)}`);
    describe(this.untilHandle, model.from + 1, model.windowCount, model.until, `until ${timeText(model.ceased)}`);
    describe(this.range, 0, model.windowCount - (model.until - model.from), model.from, text);
  }

  bind() {
    this.box.addEventListener("pointerdown", (event) => this.grab(event));
    this.box.addEventListener("pointermove", (event) => this.drag(event));
    for (const kind of ["pointerup", "pointercancel"]) this.box.addEventListener(kind, () => { this.dragged = null; });
    this.box.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("dblclick", () => this.changed(0, this.model.windowCount));
  }

  grab(event) {
    if (event.button) return;
    const kinds = new Map([[this.fromHandle, "from"], [this.untilHandle, "until"], [this.range, "range"]]);
    const window = this.windowAt(event.clientX);
    this.dragged = { kind: kinds.get(event.target) || "new", window, from: this.model.from, until: this.model.until };
    this.box.setPointerCapture(event.pointerId);
    if (this.dragged.kind === "new") event.preventDefault();
  }

  drag(event) {
    if (!this.dragged) return;
    const { kind, window, from, until } = this.dragged, now = this.windowAt(event.clientX);
    if (kind === "new") this.changed(Math.min(window, now), Math.max(window, now) + 1);
    else if (kind === "from") this.changed(Math.min(now, until - 1), until);
    else if (kind === "until") this.changed(from, Math.max(now, from) + 1);
    else {
      const moved = Math.max(-from, Math.min(this.model.windowCount - until, now - window));
      this.changed(from + moved, until + moved);
    }
  }

  press(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -8, PageUp: 8, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || ![this.fromHandle, this.untilHandle, this.range].includes(event.target)) return;
    event.preventDefault();
    const { from, until, windowCount } = this.model;
    const kept = (value, low, high) => Math.max(low, Math.min(high, value));
    if (event.target === this.fromHandle) this.changed(kept(from + step, 0, until - 1), until);
    else if (event.target === this.untilHandle) this.changed(from, kept(until + step, from + 1, windowCount));
    else { const moved = kept(step, -from, windowCount - until); this.changed(from + moved, until + moved); }
  }
}

function describe(handle, low, high, now, text) {
  for (const [name, value] of Object.entries({ valuemin: low, valuemax: high, valuenow: now, valuetext: text })) handle.setAttribute(`aria-${name}`, value);
}

const HEADROOM = 0.92;

// A log scale if the positive values span a wide range, else a linear one; other values are at the bottom.
// shared: a range of values that the scale also covers.
function verticalScale(part, shared) {
  let [low, high] = shared || [Infinity, -Infinity];
  for (let i = 0; i < part.steps.length; i++) {
    if (part.least[i] > 0) low = Math.min(low, part.least[i]);
    if (part.mean[i] > 0) low = Math.min(low, part.mean[i]);
    high = Math.max(high, part.most[i]);
  }
  if (!(high > 0)) return part.steps.length ? { part: () => 0, ticks: [0] } : null;
  // headroom keeps the highest values off the frame
  if (high / low < 30) return { part: (value) => (HEADROOM * Math.max(0, value)) / high, ticks: linearTicks(0, high, 2) };
  return {
    part: (value) => (value > low ? (HEADROOM * Math.log(value / low)) / Math.log(high / low) : 0),
    ticks: decades(low, high, 3),
  };
}

// The color of a hop's lines: from the middle of its map, darker on a light background.
function hopColor(about, hop, isDark) {
  const colors = hopColors(about, hop, isDark), at = 3 * (isDark ? 150 : 70);
  return [colors[at], colors[at + 1], colors[at + 2]];
}
