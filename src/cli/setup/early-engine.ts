import "./jitless.js";

// In a file of its own, since it is loaded before the rest of what a sandbox needs.
export { connectEngine } from "../../docker/connect.js";
