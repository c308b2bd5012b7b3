import { BrigError } from "../../../errors.js";

/** Error: `usage.invalid` for a text that cannot be the name or the id of an image. */
export function checkImageName(ref: string): void {
  const isName = /^[\w][\w.:@/-]*$/.test(ref) && !ref.includes("..") && !ref.includes("//");
  // The part before the first slash may be a host, which may have capital letters.
  const path = ref.replace(/[:@][^/]*$/, "").replace(/^[^/]*\//, "");
  if (isName && path === path.toLowerCase()) return;
  throw new BrigError(`${JSON.stringify(ref)} is not a valid image name`, {
    code: "usage.invalid",
    hint: isName
      ? "image names have no capital letters, except in a tag"
      : "write it as NAME, NAME:TAG or NAME@sha256:DIGEST",
  });
}
