target datalayout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
target triple = "amdgcn-amd-amdhsa"

@atomics.T = internal addrspace(3) global [1 x i32] undef, align 16

define amdgpu_kernel void @atomics(ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(1024) %A, ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(1024) %F, ptr addrspace(1) noalias readonly align 8 nonnull dereferenceable(2048) %D, ptr addrspace(1) noalias align 4 nonnull dereferenceable(16) %I, ptr addrspace(1) noalias align 8 nonnull dereferenceable(24) %L, ptr addrspace(1) noalias align 4 nonnull dereferenceable(12) %R, ptr addrspace(1) noalias align 8 nonnull dereferenceable(8) %S) #0 "amdgpu-flat-work-group-size"="64,64" "amdgpu-waves-per-eu"="1" !reqd_work_group_size !{i32 64, i32 1, i32 1} {
entry:
  %g.id = call i32 @llvm.amdgcn.workgroup.id.x(), !range !{i32 0, i32 4}
  %g = zext i32 %g.id to i64
  %t.id = call i32 @llvm.amdgcn.workitem.id.x(), !range !{i32 0, i32 64}
  %t = zext i32 %t.id to i64
  %.1 = icmp eq i64 %t, 0
  br i1 %.1, label %if.2.then, label %if.2.end
if.2.then:
  %.3.at = getelementptr i32, ptr addrspace(3) @atomics.T, i64 0
  store i32 0, ptr addrspace(3) %.3.at, align 4
  br label %if.2.end
if.2.end:
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %.4 = mul i64 %g, 64
  %.5 = add i64 %.4, %t
  %.6.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.6 = load i32, ptr addrspace(1) %.6.at, align 4
  %.7.at = getelementptr i32, ptr addrspace(3) @atomics.T, i64 0
  %.7 = atomicrmw add ptr addrspace(3) %.7.at, i32 %.6 syncscope("workgroup") monotonic, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %.8 = icmp eq i64 %t, 0
  br i1 %.8, label %if.9.then, label %if.9.end
if.9.then:
  %.10.at = getelementptr i32, ptr addrspace(3) @atomics.T, i64 0
  %.10 = load i32, ptr addrspace(3) %.10.at, align 4
  %.11.at = getelementptr i32, ptr addrspace(1) %I, i64 0
  %.11 = atomicrmw add ptr addrspace(1) %.11.at, i32 %.10 syncscope("agent") monotonic, align 4
  br label %if.9.end
if.9.end:
  %.12.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.12 = load i32, ptr addrspace(1) %.12.at, align 4
  %.13.at = getelementptr i32, ptr addrspace(1) %I, i64 1
  %.13 = atomicrmw max ptr addrspace(1) %.13.at, i32 %.12 syncscope("agent") monotonic, align 4
  %.14.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.14 = load i32, ptr addrspace(1) %.14.at, align 4
  %.15.at = getelementptr i32, ptr addrspace(1) %I, i64 2
  %.15 = atomicrmw xor ptr addrspace(1) %.15.at, i32 %.14 syncscope("agent") monotonic, align 4
  %.16.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.16 = load i32, ptr addrspace(1) %.16.at, align 4
  %.17.at = getelementptr i32, ptr addrspace(1) %I, i64 3
  %.17 = atomicrmw or ptr addrspace(1) %.17.at, i32 %.16 syncscope("agent") monotonic, align 4
  %.18.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.18 = load i32, ptr addrspace(1) %.18.at, align 4
  %.19 = sext i32 %.18 to i64
  %.20.at = getelementptr i64, ptr addrspace(1) %L, i64 0
  %.20 = atomicrmw add ptr addrspace(1) %.20.at, i64 %.19 syncscope("agent") monotonic, align 8
  %.21.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.21 = load i32, ptr addrspace(1) %.21.at, align 4
  %.22 = sext i32 %.21 to i64
  %.23.at = getelementptr i64, ptr addrspace(1) %L, i64 1
  %.23 = atomicrmw umin ptr addrspace(1) %.23.at, i64 %.22 syncscope("agent") monotonic, align 8
  %.24.at = getelementptr i32, ptr addrspace(1) %A, i64 %.5
  %.24 = load i32, ptr addrspace(1) %.24.at, align 4
  %.25 = sext i32 %.24 to i64
  %.26.at = getelementptr i64, ptr addrspace(1) %L, i64 2
  %.26 = atomicrmw and ptr addrspace(1) %.26.at, i64 %.25 syncscope("agent") monotonic, align 8
  %.27.at = getelementptr float, ptr addrspace(1) %F, i64 %.5
  %.27 = load float, ptr addrspace(1) %.27.at, align 4
  %.28.at = getelementptr float, ptr addrspace(1) %R, i64 0
  %.28 = atomicrmw fadd ptr addrspace(1) %.28.at, float %.27 syncscope("agent") monotonic, align 4
  %.29.at = getelementptr float, ptr addrspace(1) %F, i64 %.5
  %.29 = load float, ptr addrspace(1) %.29.at, align 4
  %.31.at = getelementptr float, ptr addrspace(1) %R, i64 1
  %.31.first = load atomic i32, ptr addrspace(1) %.31.at syncscope("agent") monotonic, align 4
  br label %atomic.30.entry
atomic.30.entry:
  br label %atomic.30.head
atomic.30.head:
  %.31.expected = phi i32 [ %.31.first, %atomic.30.entry ], [ %.31.seen, %atomic.30.attempt ]
  %.32 = bitcast i32 %.31.expected to float
  %.33.better = fcmp olt float %.29, %.32
  %.33.nan = fcmp uno float %.29, %.29
  %.33.take = or i1 %.33.better, %.33.nan
  %.33 = select i1 %.33.take, float %.29, float %.32
  br label %atomic.30.attempt
atomic.30.attempt:
  %.31.bits = bitcast float %.33 to i32
  %.31.pair = cmpxchg ptr addrspace(1) %.31.at, i32 %.31.expected, i32 %.31.bits syncscope("agent") monotonic monotonic, align 4
  %.31.seen = extractvalue { i32, i1 } %.31.pair, 0
  %.31.done = extractvalue { i32, i1 } %.31.pair, 1
  br i1 %.31.done, label %atomic.30.end, label %atomic.30.head
atomic.30.end:
  %.34.at = getelementptr float, ptr addrspace(1) %F, i64 %.5
  %.34 = load float, ptr addrspace(1) %.34.at, align 4
  %.36.at = getelementptr float, ptr addrspace(1) %R, i64 2
  %.36.first = load atomic i32, ptr addrspace(1) %.36.at syncscope("agent") monotonic, align 4
  br label %atomic.35.entry
atomic.35.entry:
  br label %atomic.35.head
atomic.35.head:
  %.36.expected = phi i32 [ %.36.first, %atomic.35.entry ], [ %.36.seen, %atomic.35.attempt ]
  %.37 = bitcast i32 %.36.expected to float
  %.38.better = fcmp ogt float %.34, %.37
  %.38.nan = fcmp uno float %.34, %.34
  %.38.take = or i1 %.38.better, %.38.nan
  %.38 = select i1 %.38.take, float %.34, float %.37
  br label %atomic.35.attempt
atomic.35.attempt:
  %.36.bits = bitcast float %.38 to i32
  %.36.pair = cmpxchg ptr addrspace(1) %.36.at, i32 %.36.expected, i32 %.36.bits syncscope("agent") monotonic monotonic, align 4
  %.36.seen = extractvalue { i32, i1 } %.36.pair, 0
  %.36.done = extractvalue { i32, i1 } %.36.pair, 1
  br i1 %.36.done, label %atomic.35.end, label %atomic.35.head
atomic.35.end:
  %.39.at = getelementptr double, ptr addrspace(1) %D, i64 %.5
  %.39 = load double, ptr addrspace(1) %.39.at, align 8
  %.40.at = getelementptr double, ptr addrspace(1) %S, i64 0
  %.40 = atomicrmw fadd ptr addrspace(1) %.40.at, double %.39 syncscope("agent") monotonic, align 8
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()

attributes #0 = { nounwind "uniform-work-group-size"="true" "amdgpu-implicitarg-num-bytes"="0" "amdgpu-no-implicitarg-ptr" "amdgpu-no-dispatch-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-queue-ptr" "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-heap-ptr" "amdgpu-no-default-queue" "amdgpu-no-completion-action" }
attributes #1 = { nounwind readnone willreturn }
