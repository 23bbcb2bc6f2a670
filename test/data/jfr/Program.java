import java.util.*;
public class Program {
    static volatile double sum;
    static final Object lock = new Object();
    static double workOne(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
    static double workTwo(int n) { double s = 0; for (int i = 1; i < n; i++) s += Math.sqrt(i); return s; }
    static double deep(int depth, int n) { return depth == 0 ? workOne(2 * n) + workTwo(n) : deep(depth - 1, n) + 1; }
    static void allocate() { List<byte[]> kept = new ArrayList<>(); for (int i = 0; i < 50; i++) kept.add(new byte[10000]); sum += kept.size(); }
    static void locked() throws InterruptedException { synchronized (lock) { Thread.sleep(25); } }
    public static void main(String[] arguments) throws Exception {
        Thread[] threads = new Thread[2];
        for (int t = 0; t < 2; t++) {
            threads[t] = new Thread(() -> {
                try { for (int i = 0; i < 12; i++) { for (int k = 0; k < 30; k++) { sum += deep(10, 100000); allocate(); } locked(); } } catch (InterruptedException e) { }
            }, t == 0 ? "first" : "the second");
            threads[t].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
