// What an image of brig is made of, for arm64: all of it as a tar archive for a build, or only rg, from the npm registry and with its hash checked.
//   node .ci/arm64-images.mjs toolbox|base|rg
import { pipeline } from "node:stream/promises";

const { imageDefinitions } = await import("../dist/sandbox/images/definition.js");
const { completeFiles, readBuildContext } = await import("../dist/sandbox/images/build-context.js");
const { packTar } = await import("../dist/sandbox/docker/calls/tar.js");

const isRg = process.argv[2] === "rg";
const definition = imageDefinitions[isRg ? "toolbox" : process.argv[2]];
const files = await completeFiles(await readBuildContext(definition, "arm64"));
if (isRg) process.stdout.write(files.find(({ path }) => path === "rg").content);
else await pipeline(packTar(files), process.stdout);
