// What the toolbox is made of, for arm64: all of it as a tar archive for a build, or only rg, from the npm registry and with its hash checked.
//   node .ci/arm64-toolbox.mjs context|rg
import { pipeline } from "node:stream/promises";

const { imageDefinitions } = await import("../dist/sandbox/images/definition.js");
const { completeFiles, readBuildContext } = await import("../dist/sandbox/images/build-context.js");
const { packTar } = await import("../dist/sandbox/docker/calls/tar.js");

const files = await completeFiles(await readBuildContext(imageDefinitions.toolbox, "arm64"));
if (process.argv[2] === "context") await pipeline(packTar(files), process.stdout);
else process.stdout.write(files.find(({ path }) => path === "rg").content);
