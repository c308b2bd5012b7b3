/** What the worker makes of an image: a file, or its pixels with four bytes each: red, green, blue and opacity. */
export type ImageForm = "jpeg" | "png" | "pixels";

/**
 * The worker thread of `ImageResizer`. It gets one image, and answers with one of another size in this form, or with null if the image
 * cannot be decoded. The decoder is Rust compiled to WebAssembly, so that a malicious image can only affect its memory.
 */
export const workerSource = `
const { parentPort, workerData } = require("node:worker_threads");
const { photon, bytes, width, height, form } = workerData;
const { PhotonImage, SamplingFilter, resize } = require(photon);
const quality = 85;
const small = () => {
  const image = PhotonImage.new_from_byteslice(bytes);
  return resize(image, width, height, SamplingFilter.Triangle);
};
const written = {
  jpeg: (image) => image.get_bytes_jpeg(quality),
  png: (image) => image.get_bytes(),
  pixels: (image) => image.get_raw_pixels(),
};
const answer = () => {
  try {
    return written[form](small());
  } catch {
    return null;
  }
};
parentPort.postMessage(answer());
`;
