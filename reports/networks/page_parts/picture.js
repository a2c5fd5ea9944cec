// Rasterizes the edges: the points along each edge take the colors of its slots, and where edges cross, the highest
// count wins. Each pixel also stores its edge, so that the edge under the pointer is found by one look-up.
const GHOST = 1, UNUSED = 2;
const MAX_ZOOM = 60, MAX_PIXELS = 5e6;
// Above QUICK_EDGES, edges are first painted at low resolution while something moves. Up to SMOOTH_EDGES, they are
// supersampled.
const QUICK_EDGES = 3000, SMOOTH_EDGES = 20000;
const TURN = 2 * Math.PI;

class Camera {
  constructor() { this.zoom = 1; this.x = 0; this.y = 0; this.width = 1; this.height = 1; this.margin = 16; }
  get radius() { return Math.max(20, Math.min(this.width, this.height) / 2 - this.margin) * this.zoom; }
  get center() { return [this.width / 2 + this.x, this.height / 2 + this.y]; }
  place(radius, angle) {
    const [x, y] = this.center;
    return [x + this.radius * radius * Math.sin(angle), y - this.radius * radius * Math.cos(angle)];
  }
  polar(x, y) {
    const [cx, cy] = this.center;
    const angle = Math.atan2(x - cx, cy - y);
    return [Math.hypot(x - cx, y - cy) / this.radius, angle < 0 ? angle + TURN : angle];
  }
  // Zooms around the fixed point (x, y).
  zoomAt(factor, x, y) {
    const before = this.zoom;
    this.zoom = Math.max(1, Math.min(MAX_ZOOM, before * factor));
    const ratio = this.zoom / before, [cx, cy] = this.center;
    this.move((1 - ratio) * (x - cx), (1 - ratio) * (y - cy));
  }
  move(dx, dy) {
    const reach = this.radius;
    this.x = Math.max(-reach, Math.min(reach, this.x + dx));
    this.y = Math.max(-reach, Math.min(reach, this.y + dy));
    if (this.zoom === 1) this.x = this.y = 0;
  }
  get state() { return { zoom: this.zoom, radius: this.radius, center: this.center, width: this.width, height: this.height }; }
}

class Picture {
  constructor(canvas, model, camera) {
    Object.assign(this, { canvas, model, camera });
    this.context = canvas.getContext("2d");
    this.surfaces = { quick: {}, fine: {} };
    this.drawn = null;
    this.lastMs = 0;
    this.ends = this.waysOfEdges();
  }

  // The start angle of each edge, and its turn to the target by the shortest way round (Sigovan et al., section IV.B).
  waysOfEdges() {
    const { model } = this, count = model.edgeCount;
    const from = new Float32Array(count), turned = new Float32Array(count);
    for (let edge = 0; edge < count; edge++) {
      const hop = model.hops[edge];
      // edges to a node that forms a whole ring are radial
      const outer = model.rings[hop], inner = model.rings[hop + 1], target = inner.middles[model.targets[edge]];
      from[edge] = outer.order.length === 1 ? target : outer.middles[model.sources[edge]];
      const difference = inner.order.length === 1 ? 0 : target - from[edge];
      turned[edge] = difference - TURN * Math.floor(difference / TURN + 0.5);
    }
    return { from, turned };
  }

  way(edge) {
    const hop = this.model.hops[edge], outer = this.model.rings[hop].inner, inner = this.model.rings[hop + 1].outer;
    return { angle: this.ends.from[edge], turned: this.ends.turned[edge], outer, inner };
  }

  pointOf(edge, fraction) {
    const way = this.way(edge);
    return this.camera.place(way.outer + (way.inner - way.outer) * fraction, way.angle + way.turned * fraction);
  }

  palette(isDark) {
    const theme = isDark ? "dark" : "light", hops = this.model.about.hops;
    const found = new Uint32Array(256 * hops.length);
    const packed = (r, g, b, a) => ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
    const [r, g, b] = this.model.about.unused[theme];
    hops.forEach((_, hop) => {
      const colors = hopColors(this.model.about, hop, isDark);
      found[hop * 256 + GHOST] = packed(r, g, b, 90);
      found[hop * 256 + UNUSED] = packed(r, g, b, 255);
      for (let level = 1; level <= 253; level++) {
        const at = 3 * Math.round(((level - 1) / 252) * 255);
        found[hop * 256 + UNUSED + level] = packed(colors[at], colors[at + 1], colors[at + 2], 255);
      }
    });
    return found;
  }

  // Widths of edges in pixels, limited by the distance between neighbors.
  widths(radius, scale) {
    const { model } = this;
    return model.about.hops.map((hop, number) => {
      const [outer, inner] = [model.rings[number], model.rings[number + 1]];
      const room = (TURN * radius * (outer.inner + inner.outer)) / 2 / Math.max(1, hop.edgeCount);
      const narrowest = (TURN * radius * outer.inner) / outer.order.length;
      return Math.max(1, Math.min(0.55 * room, 0.7 * narrowest, 9 * scale));
    });
  }

  resize(width, height, ratio) {
    this.camera.width = width; this.camera.height = height; this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio); this.canvas.height = Math.round(height * ratio);
  }

  get hasQuick() { return this.model.edgeCount > QUICK_EDGES; }

  // Repaints all edges, either at high resolution (supersampled if they are few) or quickly.
  paint(isDark, isQuick = false) {
    const began = performance.now(), { model, camera } = this;
    let scale = this.ratio;
    if (isQuick && this.hasQuick) scale = 1;
    else if (model.edgeCount <= SMOOTH_EDGES) scale *= 2;
    scale *= Math.min(1, Math.sqrt(MAX_PIXELS / (camera.width * camera.height * scale * scale)));
    const width = Math.max(1, Math.round(camera.width * scale)), height = Math.max(1, Math.round(camera.height * scale));
    this.take(this.surfaces[isQuick && this.hasQuick ? "quick" : "fine"], width, height);
    this.splat(width, height, scale);
    const out = new Uint32Array(this.image.data.buffer), palette = this.palette(isDark), values = this.values;
    for (let i = 0; i < values.length; i++) out[i] = palette[values[i]];
    this.bitmap.getContext("2d").putImageData(this.image, 0, 0);
    this.drawn = { ...camera.state, scale };
    this.lastMs = performance.now() - began;
    this.show();
  }

  // Selects the surface to paint on, and clears or resizes it.
  take(surface, width, height) {
    if (!surface.bitmap || surface.bitmap.width !== width || surface.bitmap.height !== height) {
      const bitmap = document.createElement("canvas");
      bitmap.width = width; bitmap.height = height;
      Object.assign(surface, { bitmap, values: new Uint16Array(width * height), owners: new Uint32Array(width * height), image: new ImageData(width, height) });
    } else surface.values.fill(0);
    Object.assign(this, surface);
  }

  splat(width, height, scale) {
    const { model, camera, values, owners, ends } = this;
    const slots = model.now.slots, levels = model.levels, mask = model.isolated && model.isolated.mask;
    const radius = camera.radius * scale, [cx, cy] = camera.center.map((one) => one * scale);
    const widths = this.widths(radius, scale);
    for (let edge = 0; edge < model.edgeCount; edge++) {
      const hop = model.hops[edge], base = hop * 256, first = edge * slots;
      const isGhost = mask ? !mask[edge] : false;
      const from = model.rings[hop].inner, reach = model.rings[hop + 1].outer - from;
      const turned = ends.turned[edge];
      const half = isGhost ? 0 : (mask ? Math.max(widths[hop], 2 * scale) : widths[hop]) / 2;
      const across = half > 0.75 ? Math.ceil(half / 0.7) : 0, spread = across ? half / across : 0;
      const chunks = Math.max(4, Math.ceil(Math.abs(turned) * 5)), part = 1 / chunks;
      for (let chunk = 0; chunk < chunks; chunk++) {
        const angle = ends.from[edge] + turned * chunk * part, turn = turned * part;
        let far = (from + reach * chunk * part) * radius;
        const farther = reach * part * radius;
        let sine = Math.sin(angle), cosine = Math.cos(angle);
        const x0 = cx + far * sine, y0 = cy - far * cosine;
        const x1 = cx + (far + farther) * Math.sin(angle + turn), y1 = cy - (far + farther) * Math.cos(angle + turn);
        const reserve = half + 2 + Math.abs(far) * 0.006;
        if (Math.min(x0, x1) > width + reserve || Math.max(x0, x1) < -reserve) continue;
        if (Math.min(y0, y1) > height + reserve || Math.max(y0, y1) < -reserve) continue;
        const steps = Math.max(1, Math.ceil(Math.hypot(farther, (far + farther / 2) * turn) / 0.75));
        const sineStep = Math.sin(turn / steps), cosineStep = Math.cos(turn / steps), farStep = farther / steps;
        // values increase outwards: the innermost slot is the lowest
        let place = slots * (1 - chunk * part);
        const placeStep = (slots * part) / steps;
        for (let step = 0; step < steps; step++) {
          let slot = place | 0;
          if (slot >= slots) slot = slots - 1;
          const level = slots ? levels[first + slot] : 0;
          const value = base + (isGhost ? GHOST : UNUSED + level);
          const x = cx + far * sine, y = cy - far * cosine;
          if (!across) {
            if (x >= 0 && y >= 0 && x < width && y < height) {
              const at = (y | 0) * width + (x | 0);
              if (values[at] < value) { values[at] = value; owners[at] = edge; }
            }
          } else {
            const dx = farStep * sine + (far * turn * cosine) / steps, dy = -farStep * cosine + (far * turn * sine) / steps;
            const size = spread / Math.hypot(dx, dy), nx = -dy * size, ny = dx * size;
            for (let side = -across; side <= across; side++) {
              const px = x + nx * side, py = y + ny * side;
              if (px >= 0 && py >= 0 && px < width && py < height) {
                const at = (py | 0) * width + (px | 0);
                if (values[at] < value) { values[at] = value; owners[at] = edge; }
              }
            }
          }
          const turnedSine = sine * cosineStep + cosine * sineStep;
          cosine = cosine * cosineStep - sine * sineStep;
          sine = turnedSine;
          far += farStep;
          place -= placeStep;
        }
      }
    }
  }

  // Shows the painted edges, stretched if the view has moved since, until the next repaint.
  show() {
    const { context, canvas, camera, drawn, ratio } = this;
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!drawn) return;
    const grown = camera.radius / drawn.radius, [cx, cy] = camera.center, [dx, dy] = drawn.center;
    context.imageSmoothingEnabled = grown !== 1 || drawn.scale !== ratio;
    context.imageSmoothingQuality = "high";
    context.drawImage(this.bitmap, (cx - dx * grown) * ratio, (cy - dy * grown) * ratio, drawn.width * grown * ratio, drawn.height * grown * ratio);
  }

  get isCurrent() {
    return this.drawn && JSON.stringify({ ...this.camera.state, scale: this.drawn.scale }) === JSON.stringify(this.drawn);
  }

  // The edge at or near a position on the stage; -1 without one.
  edgeAt(x, y) {
    if (!this.drawn || !this.isCurrent) return -1;
    const { bitmap, values, owners, drawn } = this;
    const reach = Math.ceil(4 * drawn.scale), px = Math.floor(x * drawn.scale), py = Math.floor(y * drawn.scale);
    let best = -1, nearest = Infinity;
    for (let dy = -reach; dy <= reach; dy++) {
      for (let dx = -reach; dx <= reach; dx++) {
        const [qx, qy] = [px + dx, py + dy];
        if (qx < 0 || qy < 0 || qx >= bitmap.width || qy >= bitmap.height) continue;
        const value = values[qy * bitmap.width + qx];
        if (!value || (value & 255) === GHOST || dx * dx + dy * dy >= nearest) continue;
        nearest = dx * dx + dy * dy;
        best = owners[qy * bitmap.width + qx];
      }
    }
    return best;
  }
}

const colorsKnown = new Map();
function hopColors(about, hop, isDark) {
  const key = `${hop} ${isDark}`;
  if (!colorsKnown.has(key)) colorsKnown.set(key, Uint8Array.from(atob(about.hops[hop].colors[isDark ? "dark" : "light"]), (c) => c.charCodeAt(0)));
  return colorsKnown.get(key);
}
