export { randomNumbers } from "../../src/lib/random-numbers.js";
