import { expect, it } from "vitest";
import { DEFAULT_IMAGE, missingImage } from "../../../../src/sandbox/plan/missing-image.js";

it.each([
  [DEFAULT_IMAGE, "build it with: brig image build"],
  ["brig/base:1.2", "build it with: brig image build"],
  ["brig/go", "build it with: brig image build go"],
  ["brig/gopher", "get it with: docker pull brig/gopher"],
  ["brig-project:1", "it was built from a Dockerfile: name that again with --dockerfile or --devcontainer"],
  ["brig/base-other", "get it with: docker pull brig/base-other"],
  ["brig/basement:1", "get it with: docker pull brig/basement:1"],
  ["other/brig/base", "get it with: docker pull other/brig/base"],
  ["python:3.12", "get it with: docker pull python:3.12"],
])("whoever asks for the image %s that is not there is told: %s", (image, hint) => {
  const { code, message, hint: given } = missingImage(image);
  expect({ code, message, hint: given }).toEqual({
    code: "image.missing",
    message: `the engine has no image "${image}"`,
    hint,
  });
});

it("the name of an image that is not there is shown without its control characters", () => {
  expect(missingImage("a\n\x1b[31m").message).toBe(String.raw`the engine has no image "a\n\u001b[31m"`);
});
