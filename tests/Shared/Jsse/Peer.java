// SPDX-License-Identifier: MIT
//
// A peer whose TLS is JSSE, one connection for each start. java Peer ROLE PORT LIMIT [KEYSTORE]
//
//   ROLE      client: connects to PORT. server: listens there and says "listening" on standard error.
//   LIMIT     jdk.tls.keyLimits for AES-GCM, such as 2^20: how many bytes JSSE lets one key process.
//   KEYSTORE  a PKCS #12 file without a password, for the server.
//
// Commands are lines of standard input; each has a line of output as its answer:
//
//   download N   reads N bytes and prints their SHA-256
//   upload N     writes N bytes of its own and prints their SHA-256
//   echo N       writes back the next N bytes as they come, and prints their SHA-256
//   get PATH     an HTTP/1.1 request; prints the status and the SHA-256 of the body, which has a Content-Length
//   post PATH N  the same with a body of N bytes, and prints the SHA-256 of that body first
//   close        closes the connection and ends
import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.security.*;
import java.security.cert.X509Certificate;
import java.util.*;
import javax.net.ssl.*;

public class Peer {
    private static final byte[] BLOCK = new byte[50_000];

    private final InputStream in;
    private final OutputStream out;

    private Peer(SSLSocket socket) throws IOException {
        in = new BufferedInputStream(socket.getInputStream(), 64 * 1024);
        out = socket.getOutputStream();
    }

    public static void main(String[] arguments) throws Exception {
        Security.setProperty("jdk.tls.keyLimits", "AES/GCM/NoPadding KeyUpdate " + arguments[2]);
        new Random(1).nextBytes(BLOCK);
        int port = Integer.parseInt(arguments[1]);
        try (SSLSocket socket = arguments[0].equals("client") ? connect(port) : accept(port, arguments[3])) {
            socket.setTcpNoDelay(true);
            socket.startHandshake();
            Peer peer = new Peer(socket);
            BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            for (String line; (line = commands.readLine()) != null && !line.equals("close");) {
                System.out.println(peer.run(line.split(" ")));
            }
        }
        System.out.println("closed");
    }

    private static SSLSocket connect(int port) throws Exception {
        // Whom it speaks to is not its business here.
        TrustManager everybody = new X509TrustManager() {
            public void checkClientTrusted(X509Certificate[] chain, String type) { }
            public void checkServerTrusted(X509Certificate[] chain, String type) { }
            public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
        };
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {everybody}, null);
        return (SSLSocket) context.getSocketFactory().createSocket(InetAddress.getLoopbackAddress(), port);
    }

    private static SSLSocket accept(int port, String path) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream file = new FileInputStream(path)) {
            store.load(file, new char[0]);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        try (ServerSocket listener =
                context.getServerSocketFactory().createServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            System.err.println("listening");
            return (SSLSocket) listener.accept();
        }
    }

    private String run(String[] command) throws Exception {
        switch (command[0]) {
            case "download": return receive(Long.parseLong(command[1]), null);
            case "upload": return send(Long.parseLong(command[1]));
            case "echo": return receive(Long.parseLong(command[1]), out);
            case "get": return request("GET " + command[1], -1);
            case "post": return request("POST " + command[1], Long.parseLong(command[2]));
            default: throw new IllegalArgumentException(command[0]);
        }
    }

    private String send(long count) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (long sent = 0; sent < count;) {
            int part = (int) Math.min(BLOCK.length, count - sent);
            out.write(BLOCK, 0, part);
            digest.update(BLOCK, 0, part);
            sent += part;
        }
        return hex(digest);
    }

    private String receive(long count, OutputStream copy) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        byte[] buffer = new byte[64 * 1024];
        for (long received = 0; received < count;) {
            int part = in.read(buffer, 0, (int) Math.min(buffer.length, count - received));
            if (part < 0) {
                throw new EOFException("after " + received + " of " + count + " bytes");
            }
            digest.update(buffer, 0, part);
            if (copy != null) {
                copy.write(buffer, 0, part);
            }
            received += part;
        }
        return hex(digest);
    }

    private String request(String start, long body) throws Exception {
        String length = body < 0 ? "" : "Content-Length: " + body + "\r\n";
        out.write((start + " HTTP/1.1\r\nHost: localhost\r\n" + length + "\r\n").getBytes(StandardCharsets.US_ASCII));
        String sent = body < 0 ? "" : send(body) + " ";
        String status = readLine().split(" ")[1];
        long answer = -1;
        for (String line; !(line = readLine()).isEmpty();) {
            if (line.toLowerCase(Locale.ROOT).startsWith("content-length:")) {
                answer = Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
            }
        }
        return sent + status + " " + receive(answer, null);
    }

    private String readLine() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next; (next = in.read()) != '\n';) {
            if (next < 0) {
                throw new EOFException("in a header, after: " + line);
            }
            line.append((char) next);
        }
        return line.toString().trim();
    }

    private static String hex(MessageDigest digest) {
        StringBuilder text = new StringBuilder();
        for (byte value : digest.digest()) {
            text.append(String.format("%02X", value));
        }
        return text.toString();
    }
}
