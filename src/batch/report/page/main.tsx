import { render } from "preact";
import { App } from "./app.js";
import { LiveSource, takeToken } from "./sources/live-source.js";
import { StaticSource } from "./sources/static-source.js";

const source = StaticSource.isIn(document) ? new StaticSource() : new LiveSource(takeToken());
const place = document.getElementById("page");
if (place !== null) render(<App source={source} />, place);
