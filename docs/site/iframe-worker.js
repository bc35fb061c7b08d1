// Search without a server. A browser starts no worker from a file of the disk, so its script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe")
    #waiting = []
    #ready = false

    constructor(address) {
      super()
      this.#frame.hidden = true
      document.body.append(this.#frame)
      const { contentDocument: page, contentWindow: inside } = this.#frame
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data })) // what the script says
      const script = page.createElement("script")
      script.src = address
      script.onload = () => {
        this.#ready = true
        this.#waiting.splice(0).forEach((data) => this.postMessage(data))
      }
      page.body.append(script)
    }

    postMessage(data) {
      if (this.#ready) this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
      else this.#waiting.push(data)
    }
  }
}
