import { BrigError } from "../../errors.js";
import { isDiskFull } from "../../lib/errno.js";
