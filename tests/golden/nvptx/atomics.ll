target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@atomics.T = internal addrspace(3) global [1 x i32] undef, align 16

define ptx_kernel void @atomics(ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(1024) %A, ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(1024) %F, ptr addrspace(1) noalias readonly align 8 nonnull dereferenceable(2048) %D, ptr addrspace(1) noalias align 4 nonnull dereferenceable(16) %I, ptr addrspace(1) noalias align 8 nonnull dereferenceable(24) %L, ptr addrspace(1) noalias align 4 nonnull dereferenceable(12) %R, ptr addrspace(1) noalias align 8 nonnull dereferenceable(8) %S) #0 {
entry:
  %g.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 4}
  %g = zext i32 %g.id to i64
  %t.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 64}
  %t = zext i32 %t.id to i64
  %.1 = icmp eq i64 %t, 0
  br i1 %.1, label %if.2.then, label %if.2.end
if.2.then:
  %.3.at = getelementptr i32, ptr addrspace(3) @atomics.T, i64 0
  store i32 0, ptr addrspace(3) %.3.at, align 4
  br label %if.2.end
if.2.end:
  call void @llvm.nvvm.barrier0()
  %.4 = mul i64 %g, 64
  %.5 = add i64 %.4, %t
  %.6.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.6 = load i32, ptr addrspace(1) %.6.at, align 4
  %.7.at = getelementptr i32, ptr addrspace(3) @atomics.T, i64 0
  %.7 = atomicrmw add ptr addrspace(3) %.7.at, i32 %.6 syncscope("block") monotonic, align 4
  call void @llvm.nvvm.barrier0()
  %.8 = icmp eq i64 %t, 0
  br i1 %.8, label %if.9.then, label %if.9.end
if.9.then:
  %.10.at = getelementptr i32, ptr addrspace(3) @atomics.T, i64 0
  %.10 = load i32, ptr addrspace(3) %.10.at, align 4
  %.11.at = getelementptr i32, ptr addrspace(1) %I, i64 0
  %.11 = atomicrmw add ptr addrspace(1) %.11.at, i32 %.10 syncscope("device") monotonic, align 4
  br label %if.9.end
if.9.end:
  %.12.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.12 = load i32, ptr addrspace(1) %.12.at, align 4
  %.13.at = getelementptr i32, ptr addrspace(1) %I, i64 1
  %.13 = atomicrmw max ptr addrspace(1) %.13.at, i32 %.12 syncscope("device") monotonic, align 4
  %.14.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.14 = load i32, ptr addrspace(1) %.14.at, align 4
  %.15.at = getelementptr i32, ptr addrspace(1) %I, i64 2
  %.15 = atomicrmw xor ptr addrspace(1) %.15.at, i32 %.14 syncscope("device") monotonic, align 4
  %.16.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.16 = load i32, ptr addrspace(1) %.16.at, align 4
  %.17.at = getelementptr i32, ptr addrspace(1) %I, i64 3
  %.17 = atomicrmw or ptr addrspace(1) %.17.at, i32 %.16 syncscope("device") monotonic, align 4
  %.18.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.18 = load i32, ptr addrspace(1) %.18.at, align 4
  %.19 = sext i32 %.18 to i64
  %.20.at = getelementptr i64, ptr addrspace(1) %L, i64 0
  %.20 = atomicrmw add ptr addrspace(1) %.20.at, i64 %.19 syncscope("device") monotonic, align 8
  %.21.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.21 = load i32, ptr addrspace(1) %.21.at, align 4
  %.22 = sext i32 %.21 to i64
  %.23.at = getelementptr i64, ptr addrspace(1) %L, i64 1
  %.23 = atomicrmw umin ptr addrspace(1) %.23.at, i64 %.22 syncscope("device") monotonic, align 8
  %.24.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.24 = load i32, ptr addrspace(1) %.24.at, align 4
  %.25 = sext i32 %.24 to i64
  %.26.at = getelementptr i64, ptr addrspace(1) %L, i64 2
  %.26 = atomicrmw and ptr addrspace(1) %.26.at, i64 %.25 syncscope("device") monotonic, align 8
  %.27.at = getelementptr float, ptr addrspace(1) %F, i64 %.5
  %.27 = load float, ptr addrspace(1) %.27.at, align 4
  %.29.at = getelementptr float, ptr addrspace(1) %R, i64 0
  %.29.first = load atomic i32, ptr addrspace(1) %.29.at syncscope("device") monotonic, align 4
  br label %atomic.28.entry
atomic.28.entry:
  br label %atomic.28.head
atomic.28.head:
  %.29.expected = phi i32 [ %.29.first, %atomic.28.entry ], [ %.29.seen, %atomic.28.attempt ]
  %.30 = bitcast i32 %.29.expected to float
  %.31 = fadd float %.30, %.27
  br label %atomic.28.attempt
atomic.28.attempt:
  %.29.bits = bitcast float %.31 to i32
  %.29.pair = cmpxchg ptr addrspace(1) %.29.at, i32 %.29.expected, i32 %.29.bits syncscope("device") monotonic monotonic, align 4
  %.29.seen = extractvalue { i32, i1 } %.29.pair, 0
  %.29.done = extractvalue { i32, i1 } %.29.pair, 1
  br i1 %.29.done, label %atomic.28.end, label %atomic.28.head
atomic.28.end:
  %.32.at = getelementptr float, ptr addrspace(1) %F, i64 %.5
  %.32 = load float, ptr addrspace(1) %.32.at, align 4
  %.34.at = getelementptr float, ptr addrspace(1) %R, i64 1
  %.34.first = load atomic i32, ptr addrspace(1) %.34.at syncscope("device") monotonic, align 4
  br label %atomic.33.entry
atomic.33.entry:
  br label %atomic.33.head
atomic.33.head:
  %.34.expected = phi i32 [ %.34.first, %atomic.33.entry ], [ %.34.seen, %atomic.33.attempt ]
  %.35 = bitcast i32 %.34.expected to float
  %.36.better = fcmp olt float %.32, %.35
  %.36.nan = fcmp uno float %.32, %.32
  %.36.take = or i1 %.36.better, %.36.nan
  %.36 = select i1 %.36.take, float %.32, float %.35
  br label %atomic.33.attempt
atomic.33.attempt:
  %.34.bits = bitcast float %.36 to i32
  %.34.pair = cmpxchg ptr addrspace(1) %.34.at, i32 %.34.expected, i32 %.34.bits syncscope("device") monotonic monotonic, align 4
  %.34.seen = extractvalue { i32, i1 } %.34.pair, 0
  %.34.done = extractvalue { i32, i1 } %.34.pair, 1
  br i1 %.34.done, label %atomic.33.end, label %atomic.33.head
atomic.33.end:
  %.37.at = getelementptr float, ptr addrspace(1) %F, i64 %.5
  %.37 = load float, ptr addrspace(1) %.37.at, align 4
  %.39.at = getelementptr float, ptr addrspace(1) %R, i64 2
  %.39.first = load atomic i32, ptr addrspace(1) %.39.at syncscope("device") monotonic, align 4
  br label %atomic.38.entry
atomic.38.entry:
  br label %atomic.38.head
atomic.38.head:
  %.39.expected = phi i32 [ %.39.first, %atomic.38.entry ], [ %.39.seen, %atomic.38.attempt ]
  %.40 = bitcast i32 %.39.expected to float
  %.41.better = fcmp ogt float %.37, %.40
  %.41.nan = fcmp uno float %.37, %.37
  %.41.take = or i1 %.41.better, %.41.nan
  %.41 = select i1 %.41.take, float %.37, float %.40
  br label %atomic.38.attempt
atomic.38.attempt:
  %.39.bits = bitcast float %.41 to i32
  %.39.pair = cmpxchg ptr addrspace(1) %.39.at, i32 %.39.expected, i32 %.39.bits syncscope("device") monotonic monotonic, align 4
  %.39.seen = extractvalue { i32, i1 } %.39.pair, 0
  %.39.done = extractvalue { i32, i1 } %.39.pair, 1
  br i1 %.39.done, label %atomic.38.end, label %atomic.38.head
atomic.38.end:
  %.42.at = getelementptr double, ptr addrspace(1) %D, i64 %.5
  %.42 = load double, ptr addrspace(1) %.42.at, align 8
  %.43.at = getelementptr double, ptr addrspace(1) %S, i64 0
  %.43 = atomicrmw fadd ptr addrspace(1) %.43.at, double %.42 syncscope("device") monotonic, align 8
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @atomics, !"maxntidx", i32 64, !"maxntidy", i32 1, !"maxntidz", i32 1}
