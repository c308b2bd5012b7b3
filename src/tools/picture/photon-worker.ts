/**
 * The worker thread of `ImageResizer`. It gets one image and answers with a smaller one as JPEG or PNG, or
 * with null if the image cannot be decoded. The decoder is Rust compiled to WebAssembly, so a malicious image
 * can only affect its memory.
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
