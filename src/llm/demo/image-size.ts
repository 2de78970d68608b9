/** Width and height of an image, from its header: PNG, GIF, WebP and JPEG. */

export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** Segments of a JPEG that are passed before its size: a camera writes about ten. */
const JPEG_SEGMENTS = 64;

/** @returns null for another format, or a damaged header */
export function pixelSize(bytes: Uint8Array): PixelSize | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    if (tag(bytes, 1, 3) === 'PNG') return { width: view.getUint32(16), height: view.getUint32(20) };
    if (tag(bytes, 0, 4) === 'GIF8') return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
    if (tag(bytes, 0, 4) === 'RIFF' && tag(bytes, 8, 4) === 'WEBP') return webpSize(bytes, view);
    if (view.getUint16(0) === 0xffd8) return jpegSize(view);
  } catch (fault) {
    // The header ends early.
    if (!(fault instanceof RangeError)) throw fault;
  }
  return null;
}

function tag(bytes: Uint8Array, from: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(from, from + length));
}

function webpSize(bytes: Uint8Array, view: DataView): PixelSize | null {
  const uint24 = (at: number): number => view.getUint16(at, true) + view.getUint8(at + 2) * 65_536;
  switch (tag(bytes, 12, 4)) {
    case 'VP8X':
      return { width: uint24(24) + 1, height: uint24(27) + 1 };
    case 'VP8L': {
      const bits = view.getUint32(21, true);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8 ':
      return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    default:
      return null;
  }
}

/** The size is in the first frame header: SOF0 to SOF15, without DHT, JPG and DAC. */
function jpegSize(view: DataView): PixelSize | null {
  let at = 2;
  for (let segment = 0; segment < JPEG_SEGMENTS; segment += 1) {
    if (view.getUint8(at) !== 0xff) return null;
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    at += 2 + view.getUint16(at + 2);
  }
  return null;
}
