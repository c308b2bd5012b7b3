/**
 * What runs in the worker thread of `PictureFitter`: it is handed one picture and answers with a smaller one as a JPEG or a PNG, or with
 * null where it cannot be decoded. The decoder is Rust compiled to WebAssembly: whatever a picture does to it stays in its own memory.
 */
export const workerSource = `
const { parentPort, workerData } = require("node:worker_threads");
const { photon, bytes, width, height, asJpeg } = workerData;
const { PhotonImage, SamplingFilter, resize } = require(photon);
const quality = 85;
const small = () => {
  const image = PhotonImage.new_from_byteslice(bytes);
  return resize(image, width, height, SamplingFilter.Triangle);
};
const answer = () => {
  try {
    const image = small();
    return asJpeg ? image.get_bytes_jpeg(quality) : image.get_bytes();
  } catch {
    return null;
  }
};
parentPort.postMessage(answer());
`;
