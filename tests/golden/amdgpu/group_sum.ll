target datalayout = "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
target triple = "amdgcn-amd-amdhsa"

@dynamic_shared = external addrspace(3) global [0 x i8], align 16

define amdgpu_kernel void @group_sum(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias writeonly align 4 %S, i64 %groups, i64 %threads) #0 "amdgpu-flat-work-group-size"="1,1024" {
entry:
  %sum = alloca [1 x float], align 16, addrspace(5)
  %g.id = call i32 @llvm.amdgcn.workgroup.id.x(), !range !{i32 0, i32 2147483647}
  %g = zext i32 %g.id to i64
  %t.id = call i32 @llvm.amdgcn.workitem.id.x(), !range !{i32 0, i32 1024}
  %t = zext i32 %t.id to i64
  %T = getelementptr i8, ptr addrspace(3) @dynamic_shared, i64 0
  %.1 = mul i64 %g, %threads
  %.2 = add i64 %.1, %t
  %.3.at = getelementptr float, ptr addrspace(1) %A, i64 %.2
  %.3 = load float, ptr addrspace(1) %.3.at, align 4
  %.4.at = getelementptr float, ptr addrspace(3) %T, i64 %t
  store float %.3, ptr addrspace(3) %.4.at, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %.5 = icmp eq i64 %t, 0
  br i1 %.5, label %if.6.then, label %if.6.end
if.6.then:
  %.7.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  store float 0x0000000000000000, ptr addrspace(5) %.7.at, align 4
  br label %for.8.entry
for.8.entry:
  br label %for.8.head
for.8.head:
  %i = phi i64 [ 0, %for.8.entry ], [ %i.next, %for.8.latch ]
  %i.more = icmp slt i64 %i, %threads
  br i1 %i.more, label %for.8.body, label %for.8.end
for.8.body:
  %.9.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  %.9 = load float, ptr addrspace(5) %.9.at, align 4
  %.10.at = getelementptr float, ptr addrspace(3) %T, i64 %i
  %.10 = load float, ptr addrspace(3) %.10.at, align 4
  %.11 = fadd float %.9, %.10
  %.12.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  store float %.11, ptr addrspace(5) %.12.at, align 4
  br label %for.8.latch
for.8.latch:
  %i.next = add i64 %i, 1
  br label %for.8.head
for.8.end:
  %.13.at = getelementptr float, ptr addrspace(5) %sum, i64 0
  %.13 = load float, ptr addrspace(5) %.13.at, align 4
  %.14.at = getelementptr float, ptr addrspace(1) %S, i64 %g
  store float %.13, ptr addrspace(1) %.14.at, align 4
  br label %if.6.end
if.6.end:
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()

attributes #0 = { nounwind "uniform-work-group-size"="true" "amdgpu-implicitarg-num-bytes"="0" "amdgpu-no-implicitarg-ptr" "amdgpu-no-dispatch-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-queue-ptr" "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-heap-ptr" "amdgpu-no-default-queue" "amdgpu-no-completion-action" }
attributes #1 = { nounwind readnone willreturn }
