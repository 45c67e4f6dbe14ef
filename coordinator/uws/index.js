// hyper-express asks for `uWebSockets.js`, which is not on the npm registry. `uws-pack` is the same library, built for
// Node 22, some versions older than hyper-express 7 expects. This file stands in its place (see `overrides` in the root
// package.json) and closes the gap: calls that the older build lacks, and one whose arguments changed.
import { patchBodies } from './bodies.js'
import { patchEnds } from './ends.js'
import { forgetHeads } from './heads.js'
import { openLender } from './lender.js'
import * as uws from 'uws-pack'

export * from 'uws-pack'

forgetHeads()

let patched = false

/** All responses share one prototype, which can only be reached from a response: so it is patched on the first. */
function patch(res) {
  if (patched) return
  patched = true
  const proto = Object.getPrototypeOf(res)
  const endWithoutBody = proto.endWithoutBody
  // The older build reads an `undefined` length as a number and sends `content-length: 9223372036854775808`. With a
  // length it takes the answer for done when so many bytes were sent, which is never: it would end the connection
  // unanswered with the next request.
  proto.endWithoutBody = function (length, close) {
    if (close) return endWithoutBody.call(this, length ?? 0, true)
    if (length === 0) return endWithoutBody.call(this, 0)
    if (length !== undefined) this.writeHeader('content-length', String(length))
    return endWithoutBody.call(this)
  }
  proto.getRemotePort ??= () => 0
  proto.getProxiedRemotePort ??= () => 0
  proto.beginWrite ??= function () {
    return this
  }
  patchBodies(proto)
  patchEnds(proto, underLentCork)
}

let isJoining = false

/** The same for requests: of a header that was sent twice hyper-express would keep the last, and nobody would know. */
function joinRepeated(req) {
  if (isJoining) return
  isJoining = true
  const proto = Object.getPrototypeOf(req)
  const { forEach } = proto
  proto.forEach = function (callback) {
    const seen = Object.create(null)
    forEach.call(this, (name, value) => {
      // A list, as RFC 9110 has it. What takes no list refuses it.
      seen[name] = seen[name] === undefined ? value : `${seen[name]}, ${value}`
      callback(name, seen[name])
    })
  }
}

/** Of the servers of this process that listen. */
const lenders = new Set()

/**
 * While another socket is corked, a cork does nothing of its own: what is written goes to the kernel at once. Answers
 * false when there is none to lend.
 */
function underLentCork(cork, res, act) {
  return [...lenders].some((lender) => lender.cork(() => cork.call(res, act)))
}

/**
 * An upgrade reallocates its socket, and the cork around it tells so by a changed address. When the memory stays where
 * it is, the older build goes on to read the WebSocket as an HTTP response, now and then takes it for one that is to be
 * closed, and ends the connection right after its 101. So the upgrade happens inside a cork that is lent. Where there
 * is none, it happens without a cork: right too, but µWS says on stderr that it would have been faster with one.
 */
function upgradeUnderLentCork(res) {
  const { cork } = res
  res.cork = (act) => {
    // A refusal is an answer like any other.
    if (!res.becomesSocket) cork.call(res, act)
    else if (!underLentCork(cork, res, act)) act()
    return res
  }
}

function wrap(app) {
  for (const method of ['get', 'post', 'put', 'patch', 'del', 'options', 'head', 'trace', 'connect', 'any']) {
    const register = app[method]
    app[method] = (pattern, handler) => {
      register.call(app, pattern, (res, req) => {
        patch(res)
        joinRepeated(req)
        return handler(res, req)
      })
      return app
    }
  }
  const ws = app.ws
  app.ws = (pattern, behavior) => {
    ws.call(app, pattern, behavior.upgrade ? { ...behavior, ...patchedSocket(behavior) } : behavior)
    return app
  }
  const { listen, close } = app
  let lender
  app.listen = (...args) => {
    lender = openLender()
    lenders.add(lender)
    return listen.apply(app, args)
  }
  app.close = () => {
    lender?.close()
    lenders.delete(lender)
    return close.call(app)
  }
  app.getDescriptor ??= () => 0
  return app
}

/** Pings and pongs that a socket may send in a second. Ours sends a ping each 10 s, and a pong for each of ours. */
const MOST_SIGNS = 100
/** RFC 6455's for a sender that breaks the rules. */
const POLICY = 1008

/**
 * µWS calls for each ping and pong, 87,000 times for one read that is full of them. Ended within its call, a socket is
 * not heard any more. Pings are counted too, though µWS answers them by itself: unheard, they would have no bound.
 */
function countSigns() {
  let [since, signs] = [0, 0]
  return (socket) => {
    if (signs === 0 || performance.now() - since > 1000) [since, signs] = [performance.now(), 0]
    if (++signs > MOST_SIGNS) socket.end(POLICY, 'too many pings or pongs')
    return signs <= MOST_SIGNS
  }
}

function patchedSocket(behavior) {
  const counts = new WeakMap()
  return {
    upgrade(res, req, context) {
      patch(res)
      joinRepeated(req)
      upgradeUnderLentCork(res)
      return behavior.upgrade(res, req, context)
    },
    open(socket) {
      counts.set(socket, countSigns())
      return behavior.open?.(socket)
    },
    ping(socket) {
      counts.get(socket)?.(socket)
    },
    pong(socket, message) {
      if (counts.get(socket)?.(socket)) behavior.pong?.(socket, message)
    },
  }
}

export const App = (options) => wrap(uws.App(options))
export const SSLApp = (options) => wrap(uws.SSLApp(options))
export default { ...uws, App, SSLApp }
