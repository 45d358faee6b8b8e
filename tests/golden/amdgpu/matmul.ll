target datalayout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
target triple = "amdgcn-amd-amdhsa"

@matmul.As = internal addrspace(3) global [256 x float] undef, align 16
@matmul.Bs = internal addrspace(3) global [256 x float] undef, align 16

define amdgpu_kernel void @matmul(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias readonly align 4 %B, ptr addrspace(1) noalias writeonly align 4 nonnull dereferenceable(4096) %C, i64 %k) #0 "amdgpu-flat-work-group-size"="256,256" "amdgpu-waves-per-eu"="1" !reqd_work_group_size !{i32 16, i32 16, i32 1} {
entry:
  %sum = alloca [1 x float], align 16, addrspace(5)
  %by.id = call i32 @llvm.amdgcn.workgroup.id.y(), !range !{i32 0, i32 2}
  %by = zext i32 %by.id to i64
  %bx.id = call i32 @llvm.amdgcn.workgroup.id.x(), !range !{i32 0, i32 2}
  %bx = zext i32 %bx.id to i64
  %ty.id = call i32 @llvm.amdgcn.workitem.id.y(), !range !{i32 0, i32 16}
  %ty = zext i32 %ty.id to i64
  %tx.id = call i32 @llvm.amdgcn.workitem.id.x(), !range !{i32 0, i32 16}
  %tx = zext i32 %tx.id to i64
  %.1.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  store float 0x0000000000000000, ptr addrspace(5) %.1.at, align 4
  %.2 = ashr i64 %k, 4
  br label %for.3.entry
for.3.entry:
  br label %for.3.head
for.3.head:
  %s = phi i64 [ 0, %for.3.entry ], [ %s.next, %for.3.latch ]
  %s.more = icmp slt i64 %s, %.2
  br i1 %s.more, label %for.3.body, label %for.3.end
for.3.body:
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %.4 = mul i64 %by, 16
  %.5 = add i64 %.4, %ty
  %.6 = mul i64 %.5, %k
  %.7 = mul i64 %s, 16
  %.8 = add i64 %.6, %.7
  %.9 = add i64 %.8, %tx
  %.10.at = getelementptr float, ptr addrspace(1) %A, i64 %.9
  %.10 = load float, ptr addrspace(1) %.10.at, align 4
  %.11 = mul i64 %ty, 16
  %.12 = add i64 %.11, %tx
  %.13.at = getelementptr float, ptr addrspace(3) @matmul.As, i64 %.12
  store float %.10, ptr addrspace(3) %.13.at, align 4
  %.14 = mul i64 %s, 16
  %.15 = add i64 %.14, %ty
  %.16 = mul i64 %.15, 32
  %.17 = mul i64 %bx, 16
  %.18 = add i64 %.16, %.17
  %.19 = add i64 %.18, %tx
  %.20.at = getelementptr float, ptr addrspace(1) %B, i64 %.19
  %.20 = load float, ptr addrspace(1) %.20.at, align 4
  %.21 = mul i64 %ty, 16
  %.22 = add i64 %.21, %tx
  %.23.at = getelementptr float, ptr addrspace(3) @matmul.Bs, i64 %.22
  store float %.20, ptr addrspace(3) %.23.at, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  br label %for.24.entry
for.24.entry:
  br label %for.24.head
for.24.head:
  %r = phi i64 [ 0, %for.24.entry ], [ %r.next, %for.24.latch ]
  %r.more = icmp slt i64 %r, 16
  br i1 %r.more, label %for.24.body, label %for.24.end
for.24.body:
  %.25.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  %.25 = load float, ptr addrspace(5) %.25.at, align 4
  %.26 = mul i64 %ty, 16
  %.27 = add i64 %.26, %r
  %.28.at = getelementptr float, ptr addrspace(3) @matmul.As, i64 %.27
  %.28 = load float, ptr addrspace(3) %.28.at, align 4
  %.29 = mul i64 %r, 16
  %.30 = add i64 %.29, %tx
  %.31.at = getelementptr float, ptr addrspace(3) @matmul.Bs, i64 %.30
  %.31 = load float, ptr addrspace(3) %.31.at, align 4
  %.32 = fmul float %.28, %.31
  %.33 = fadd float %.25, %.32
  %.34.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  store float %.33, ptr addrspace(5) %.34.at, align 4
  br label %for.24.latch
for.24.latch:
  %r.next = add i64 %r, 1
  br label %for.24.head
for.24.end:
  br label %for.3.latch
for.3.latch:
  %s.next = add i64 %s, 1
  br label %for.3.head
for.3.end:
  %.35.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  %.35 = load float, ptr addrspace(5) %.35.at, align 4
  %.36 = mul i64 %by, 16
  %.37 = add i64 %.36, %ty
  %.38 = mul i64 %.37, 32
  %.39 = mul i64 %bx, 16
  %.40 = add i64 %.38, %.39
  %.41 = add i64 %.40, %tx
  %.42.at = getelementptr float, ptr addrspace(1) %C, i64 %.41
  store float %.35, ptr addrspace(1) %.42.at, align 4
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()

attributes #0 = { nounwind "uniform-work-group-size"="true" "amdgpu-implicitarg-num-bytes"="0" "amdgpu-no-implicitarg-ptr" "amdgpu-no-dispatch-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-queue-ptr" "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-heap-ptr" "amdgpu-no-default-queue" "amdgpu-no-completion-action" }
attributes #1 = { nounwind readnone willreturn }
