/** @param {Response} response @param {() => void} onSign called for whatever comes, heartbeats too */
export async function* eventsOf(response, onSign) {
	const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
	for (let buffer = ""; ; ) {
		const { value, done } = await reader.read();
		if (done) return;
		onSign();
		const blocks = (buffer + value).split("\n\n");
		buffer = /** @type {string} */ (blocks.pop());
		for (const block of blocks) {
			const data = block.split("\n").find((line) => line.startsWith("data: "));
			if (data) yield JSON.parse(data.slice(6));
		}
	}
}
