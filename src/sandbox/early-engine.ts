// A separate module, because it is loaded before everything else that a sandbox needs.
export { connectEngine } from "./docker/connect.js";
