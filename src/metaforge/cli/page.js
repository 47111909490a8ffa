// Draws one GLB with WebGL and lets the mouse turn it. Positions, normals and base colours are used; no textures.
"use strict";
(() => {
  const canvas = document.querySelector("canvas");
  const gl = canvas.getContext("webgl", { antialias: true });
  const fail = (text) => {
    const note = document.createElement("p");
    note.className = "fault";
    note.textContent = text;
    canvas.replaceWith(note);
    document.querySelector(".hint").remove();
  };
  if (!gl) return fail("This browser offers no WebGL, so the part cannot be drawn.");
  gl.getExtension("OES_element_index_uint");

  // -- read the file -------------------------------------------------------------------------------------------
  const bytes = Uint8Array.from(atob(GLB), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const jsonLength = view.getUint32(12, true);
  const gltf = JSON.parse(new TextDecoder().decode(bytes.subarray(20, 20 + jsonLength)));
  const binary = 20 + jsonLength + 8;
  const KINDS = { 5120: Int8Array, 5121: Uint8Array, 5122: Int16Array, 5123: Uint16Array, 5125: Uint32Array, 5126: Float32Array };
  const WIDTHS = { SCALAR: 1, VEC2: 2, VEC3: 3, VEC4: 4 };

  const read = (index) => {
    const accessor = gltf.accessors[index], part = gltf.bufferViews[accessor.bufferView];
    const Kind = KINDS[accessor.componentType], width = WIDTHS[accessor.type], size = Kind.BYTES_PER_ELEMENT;
    const start = binary + (part.byteOffset || 0) + (accessor.byteOffset || 0), stride = part.byteStride || width * size;
    const values = new Kind(accessor.count * width);
    for (let i = 0; i < accessor.count; i++)
      values.set(new Kind(bytes.slice(start + i * stride, start + i * stride + width * size).buffer), i * width);
    return values;
  };

  // -- 4 x 4 matrices, column by column ------------------------------------------------------------------------
  const multiply = (a, b) => {
    const c = new Float32Array(16);
    for (let i = 0; i < 4; i++)
      for (let j = 0; j < 4; j++)
        for (let k = 0; k < 4; k++) c[4 * j + i] += a[4 * k + i] * b[4 * j + k];
    return c;
  };
  const IDENTITY = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
  const placed = (node) => {
    if (node.matrix) return new Float32Array(node.matrix);
    const [x, y, z, w] = node.rotation || [0, 0, 0, 1], [sx, sy, sz] = node.scale || [1, 1, 1], t = node.translation || [0, 0, 0];
    return new Float32Array([
      (1 - 2 * (y * y + z * z)) * sx, 2 * (x * y + z * w) * sx, 2 * (x * z - y * w) * sx, 0,
      2 * (x * y - z * w) * sy, (1 - 2 * (x * x + z * z)) * sy, 2 * (y * z + x * w) * sy, 0,
      2 * (x * z + y * w) * sz, 2 * (y * z - x * w) * sz, (1 - 2 * (x * x + y * y)) * sz, 0,
      t[0], t[1], t[2], 1,
    ]);
  };
  const apply = (m, x, y, z, w) => [0, 1, 2].map((i) => m[i] * x + m[4 + i] * y + m[8 + i] * z + m[12 + i] * w);

  // -- gather triangles, in the scene's frame ------------------------------------------------------------------
  const parts = [], low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  const add = (primitive, matrix) => {
    if ((primitive.mode ?? 4) !== 4) return;
    let points = read(primitive.attributes.POSITION), normals = primitive.attributes.NORMAL === undefined ? null : read(primitive.attributes.NORMAL);
    const order = primitive.indices === undefined ? Uint32Array.from({ length: points.length / 3 }, (_, i) => i) : Uint32Array.from(read(primitive.indices));
    const moved = new Float32Array(points.length), turned = new Float32Array(points.length);
    for (let i = 0; i < points.length; i += 3) {
      const p = apply(matrix, points[i], points[i + 1], points[i + 2], 1);
      moved.set(p, i);
      for (let a = 0; a < 3; a++) { low[a] = Math.min(low[a], p[a]); high[a] = Math.max(high[a], p[a]); }
      if (normals) turned.set(apply(matrix, normals[i], normals[i + 1], normals[i + 2], 0), i);
    }
    if (!normals)
      for (let i = 0; i < order.length; i += 3) {
        const [a, b, c] = [order[i], order[i + 1], order[i + 2]].map((v) => moved.subarray(3 * v, 3 * v + 3));
        const u = [b[0] - a[0], b[1] - a[1], b[2] - a[2]], v = [c[0] - a[0], c[1] - a[1], c[2] - a[2]];
        const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        for (const k of [0, 1, 2]) for (const q of [0, 1, 2]) turned[3 * order[i + k] + q] += n[q];
      }
    const material = (gltf.materials || [])[primitive.material] || {};
    const colour = (material.pbrMetallicRoughness || {}).baseColorFactor || [0.37, 0.45, 0.57, 1];
    parts.push({ moved, turned, order, colour });
  };
  const walk = (index, above) => {
    const node = gltf.nodes[index], matrix = multiply(above, placed(node));
    if (node.mesh !== undefined) gltf.meshes[node.mesh].primitives.forEach((each) => add(each, matrix));
    (node.children || []).forEach((child) => walk(child, matrix));
  };
  (gltf.scenes[gltf.scene || 0].nodes || []).forEach((index) => walk(index, IDENTITY));
  if (!parts.length) return fail("The file holds no triangles.");

  // -- draw ----------------------------------------------------------------------------------------------------
  const shader = (kind, text) => {
    const made = gl.createShader(kind);
    gl.shaderSource(made, text);
    gl.compileShader(made);
    return made;
  };
  const program = gl.createProgram();
  gl.attachShader(program, shader(gl.VERTEX_SHADER, `
    attribute vec3 point, normal; uniform mat4 model, project; varying vec3 n;
    void main() { n = mat3(model) * normal; gl_Position = project * model * vec4(point, 1.0); }`));
  // Base colours are linear light; the screen wants sRGB.
  gl.attachShader(program, shader(gl.FRAGMENT_SHADER, `
    precision mediump float; uniform vec3 colour; varying vec3 n;
    void main() {
      vec3 m = normalize(n); if (m.z < 0.0) m = -m;
      float light = 0.35 + 0.65 * max(dot(m, normalize(vec3(0.25, 0.45, 1.0))), 0.0) + 0.12 * m.y;
      vec3 linear = clamp(colour * light, 0.0, 1.0);
      vec3 low = linear * 12.92, high = 1.055 * pow(linear, vec3(1.0 / 2.4)) - 0.055;
      gl_FragColor = vec4(mix(low, high, step(0.0031308, linear)), 1.0);
    }`));
  gl.linkProgram(program);
  gl.useProgram(program);
  gl.enable(gl.DEPTH_TEST);
  const at = (name) => gl.getUniformLocation(program, name);
  const buffer = (target, data) => {
    const made = gl.createBuffer();
    gl.bindBuffer(target, made);
    gl.bufferData(target, data, gl.STATIC_DRAW);
    return made;
  };
  for (const part of parts) {
    part.points = buffer(gl.ARRAY_BUFFER, part.moved);
    part.normals = buffer(gl.ARRAY_BUFFER, part.turned);
    part.triangles = buffer(gl.ELEMENT_ARRAY_BUFFER, part.order);
  }
  const centre = low.map((value, a) => (value + high[a]) / 2);
  const radius = Math.max(Math.hypot(...high.map((value, a) => value - low[a])) / 2, 1e-9);
  const START = { yaw: -0.6, pitch: 0.5, zoom: 1, x: 0, y: 0 };
  let eye = { ...START };

  const draw = () => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth * ratio, height = canvas.clientHeight * ratio;
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0.933, 0.945, 0.961, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const [cy, sy, cp, sp] = [Math.cos(eye.yaw), Math.sin(eye.yaw), Math.cos(eye.pitch), Math.sin(eye.pitch)];
    const turn = new Float32Array([cy, sy * sp, -sy * cp, 0, 0, cp, sp, 0, sy, -cy * sp, cy * cp, 0, 0, 0, 0, 1]);
    const shift = new Float32Array([...IDENTITY.subarray(0, 12), -centre[0], -centre[1], -centre[2], 1]);
    const reach = radius * 1.15 / eye.zoom, wide = Math.max(width / height, 1), tall = Math.max(height / width, 1);
    const project = new Float32Array([1 / (reach * wide), 0, 0, 0, 0, 1 / (reach * tall), 0, 0, 0, 0, -1 / (4 * radius), 0, eye.x, eye.y, 0, 1]);
    gl.uniformMatrix4fv(at("model"), false, multiply(turn, shift));
    gl.uniformMatrix4fv(at("project"), false, project);
    for (const part of parts) {
      for (const [name, data] of [["point", part.points], ["normal", part.normals]]) {
        const place = gl.getAttribLocation(program, name);
        gl.bindBuffer(gl.ARRAY_BUFFER, data);
        gl.enableVertexAttribArray(place);
        gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
      }
      gl.uniform3fv(at("colour"), part.colour.slice(0, 3));
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, part.triangles);
      gl.drawElements(gl.TRIANGLES, part.order.length, gl.UNSIGNED_INT, 0);
    }
  };

  // -- the mouse -----------------------------------------------------------------------------------------------
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    if (event.shiftKey || event.buttons & 4) {
      eye.x += 2 * event.movementX / canvas.clientWidth;
      eye.y -= 2 * event.movementY / canvas.clientHeight;
    } else {
      eye.yaw += event.movementX * 0.01;
      eye.pitch = Math.max(-1.57, Math.min(1.57, eye.pitch + event.movementY * 0.01));
    }
    draw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    eye.zoom = Math.max(0.1, Math.min(50, eye.zoom * Math.exp(-event.deltaY * 0.001)));
    draw();
  }, { passive: false });
  canvas.addEventListener("dblclick", () => { eye = { ...START }; draw(); });
  window.addEventListener("resize", draw);
  draw();
})();
