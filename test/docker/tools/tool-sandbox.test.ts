import { Sandbox } from "../../../src/sandbox/sandbox.js";
import { describeToolSandbox } from "../../contract/tool-sandbox.js";
import { testRuntime } from "../../support/runtime-differences.js";

describeToolSandbox("Sandbox", () => Sandbox.create({ workspaceKind: "none", runtime: testRuntime }));
