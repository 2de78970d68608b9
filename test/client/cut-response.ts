/** The response, whose connection breaks after some bytes. What was sent before is read before the error. */
export function cutAfter(response: Response, bytes: number): Response {
  const reader = response.body?.getReader();
  let left = bytes;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (left === 0) return controller.error(new TypeError('terminated'));
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done || value === undefined) return controller.close();
        const part = value.subarray(0, left);
        left -= part.byteLength;
        controller.enqueue(part);
        if (left === 0) void reader?.cancel().catch(() => undefined);
      },
      cancel() {
        void reader?.cancel().catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}
