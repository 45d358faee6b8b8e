target datalayout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @halves(ptr addrspace(1) noalias readonly align 2 nonnull dereferenceable(128) %A, ptr addrspace(1) noalias readonly align 2 nonnull dereferenceable(128) %B, ptr addrspace(1) noalias writeonly align 2 nonnull dereferenceable(128) %C, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(256) %D, i16 %x.passed, i8 %add.passed) #0 "amdgpu-flat-work-group-size"="4,4" "amdgpu-waves-per-eu"="1" !reqd_work_group_size !{i32 4, i32 1, i32 1} {
entry:
  %x = bitcast i16 %x.passed to half
  %add = icmp ne i8 %add.passed, 0
  %bx.id = call i32 @llvm.amdgcn.workgroup.id.x(), !range !{i32 0, i32 4}
  %bx = zext i32 %bx.id to i64
  %tx.id = call i32 @llvm.amdgcn.workitem.id.x(), !range !{i32 0, i32 4}
  %tx = zext i32 %tx.id to i64
  %.1 = mul i64 %bx, 4
  %.2 = add i64 %.1, %tx
  %.3 = mul i64 %.2, 4
  %.4.at = getelementptr half, ptr addrspace(1) %A, i64 %.3
  %.4 = load <4 x half>, ptr addrspace(1) %.4.at, align 2
  %.5.at = getelementptr half, ptr addrspace(1) %B, i64 %.3
  %.5 = load <4 x half>, ptr addrspace(1) %.5.at, align 2
  %.6 = fmul <4 x half> %.4, %.5
  %.7.lane = insertelement <4 x half> poison, half %x, i64 0
  %.7 = shufflevector <4 x half> %.7.lane, <4 x half> poison, <4 x i32> zeroinitializer
  %.8 = fadd <4 x half> %.6, %.7
  %.9.at = getelementptr half, ptr addrspace(1) %C, i64 %.3
  store <4 x half> %.8, ptr addrspace(1) %.9.at, align 2
  br label %for.10.entry
for.10.entry:
  br label %for.10.head
for.10.head:
  %j = phi i64 [ 0, %for.10.entry ], [ %j.next, %for.10.latch ]
  %j.more = icmp slt i64 %j, 4
  br i1 %j.more, label %for.10.body, label %for.10.end
for.10.body:
  br i1 %add, label %if.11.then, label %if.11.else
if.11.then:
  %.12 = add i64 %.3, %j
  %.13.at = getelementptr half, ptr addrspace(1) %A, i64 %.12
  %.13 = load half, ptr addrspace(1) %.13.at, align 2
  %.14 = add i64 %.3, %j
  %.15.at = getelementptr half, ptr addrspace(1) %B, i64 %.14
  %.15 = load half, ptr addrspace(1) %.15.at, align 2
  %.16 = fadd half %.13, %.15
  %.17.better = fcmp ogt half %x, %.16
  %.17.nan = fcmp uno half %x, %x
  %.17.take = or i1 %.17.better, %.17.nan
  %.17 = select i1 %.17.take, half %x, half %.16
  %.18 = fpext half %.17 to float
  %.19 = add i64 %.3, %j
  %.20.at = getelementptr float, ptr addrspace(1) %D, i64 %.19
  store float %.18, ptr addrspace(1) %.20.at, align 4
  br label %if.11.end
if.11.else:
  %.21 = add i64 %.3, %j
  %.22.at = getelementptr half, ptr addrspace(1) %A, i64 %.21
  %.22 = load half, ptr addrspace(1) %.22.at, align 2
  %.23 = fpext half %.22 to float
  %.24 = add i64 %.3, %j
  %.25.at = getelementptr half, ptr addrspace(1) %B, i64 %.24
  %.25 = load half, ptr addrspace(1) %.25.at, align 2
  %.26 = fpext half %.25 to float
  %.27 = fdiv float %.23, %.26
  %.28 = call float @llvm.canonicalize.f32(float %.27)
  %.29 = fptrunc float %.28 to half
  %.30 = fsub half %.29, 0xH2E66
  %.31 = fpext half %.30 to float
  %.32 = add i64 %.3, %j
  %.33.at = getelementptr float, ptr addrspace(1) %D, i64 %.32
  store float %.31, ptr addrspace(1) %.33.at, align 4
  br label %if.11.end
if.11.end:
  br label %for.10.latch
for.10.latch:
  %j.next = add i64 %j, 1
  br label %for.10.head
for.10.end:
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
declare float @llvm.canonicalize.f32(float)

attributes #0 = { nounwind "uniform-work-group-size"="true" "amdgpu-implicitarg-num-bytes"="0" "amdgpu-no-implicitarg-ptr" "amdgpu-no-dispatch-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-queue-ptr" "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-heap-ptr" "amdgpu-no-default-queue" "amdgpu-no-completion-action" }
attributes #1 = { nounwind readnone willreturn }
