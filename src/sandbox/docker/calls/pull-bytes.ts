/** How far a pull is, in bytes as they are sent. */
export interface PulledBytes {
  downloaded: number;
  unpacked: number;
  /** What both come to in the end; null while the engine has not said it of each layer. */
  total: number | null;
}

/** A message of the engine about a layer. */
interface LayerMessage {
  id: string;
  status: string;
  current: number | null;
  total: number | null;
}

interface Layer {
  downloaded: number;
  unpacked: number;
  total: number | null;
}

/** No image has more: overlay2 mounts 128. */
const MAX_LAYERS = 1000;
const NEW = new Set(["Pulling fs layer", "Waiting", "Downloading"]);

/** Adds up what the engine says of the layers of a pull. */
export class PullBytes {
  readonly #layers = new Map<string, Layer>();

  /** Null for a message that is about no layer. */
  take({ id, status, current, total }: LayerMessage): PulledBytes | null {
    const layer = this.#layerOf(id, status);
    if (layer === null) return null;
    const [has, of] = [size(current), size(total)];
    if (of !== null && of > 0) layer.total = of;
    if (status === "Already exists") layer.total = 0;
    const whole = layer.total ?? 0;
    // A layer whose size was never said is so small that it came at once.
    if (status === "Download complete" || status === "Pull complete") layer.total = whole;
    if (status === "Downloading") layer.downloaded = Math.min(has ?? 0, whole);
    else if (status === "Extracting")
      Object.assign(layer, { downloaded: whole, unpacked: Math.min(has ?? 0, whole) });
    else if (status.startsWith("Retrying")) layer.downloaded = 0;
    else if (status === "Download complete" || status === "Verifying Checksum") layer.downloaded = whole;
    else if (status === "Pull complete") Object.assign(layer, { downloaded: whole, unpacked: whole });
    return this.#sum();
  }

  #layerOf(id: string, status: string): Layer | null {
    const known = this.#layers.get(id);
    if (known !== undefined || !NEW.has(status) || this.#layers.size >= MAX_LAYERS) return known ?? null;
    const layer = { downloaded: 0, unpacked: 0, total: null };
    this.#layers.set(id, layer);
    return layer;
  }

  #sum(): PulledBytes {
    const sum: PulledBytes = { downloaded: 0, unpacked: 0, total: 0 };
    for (const { downloaded, unpacked, total } of this.#layers.values()) {
      sum.downloaded += downloaded;
      sum.unpacked += unpacked;
      sum.total = sum.total === null || total === null ? null : sum.total + total;
    }
    return sum;
  }
}

function size(value: number | null): number | null {
  return value !== null && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
