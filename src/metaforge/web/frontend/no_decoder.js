// Stands for the decoder of compressed models: it would compile WebAssembly, which the pages' policy refuses, and our
// models are plain.
export const MeshoptDecoder = {supported: false, ready: Promise.resolve()};
